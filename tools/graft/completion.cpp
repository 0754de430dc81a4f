// Scripts that complete verbs, options and values in a shell, made from the options themselves.
#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>

#include "tools/graft/format_internal.h"
#include "tools/graft/options.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

struct VerbOption {
  std::string verb;
  OptionFacts option;
};

std::vector<VerbOption> all_options(const CLI::App& root) {
  std::vector<VerbOption> all;
  for (const CLI::App* verb : verbs_of(root)) {
    for (OptionFacts& option : facts_of(*verb))
      all.push_back({verb->get_name(), std::move(option)});
  }
  return all;
}

/// Where nothing is listed, bash completes names of files. A positional stands behind its verb.
std::string bash(const CLI::App& root) {
  std::ostringstream out;
  std::vector<std::string> names;
  for (const CLI::App* verb : verbs_of(root)) names.push_back(verb->get_name());
  out << "# bash completion for graft\n_graft() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
         "  if [[ $word == '=' ]]; then word=; "
         "elif [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
         "  COMPREPLY=()\n"
         "  if ((COMP_CWORD == 1)); then\n    words='"
      << joined(names, " ")
      << " --help --version'\n"
         "  elif [[ $word == -* ]]; then\n    case ${COMP_WORDS[1]} in\n";
  for (const CLI::App* verb : verbs_of(root)) {
    out << "      " << verb->get_name() << ") words='";
    for (const OptionFacts& option : facts_of(*verb)) {
      if (!option.names.empty()) out << joined(option.names, " ") << ' ';
    }
    out << "' ;;\n";
  }
  out << "    esac\n  else\n    case ${COMP_WORDS[1]}:$before in\n";
  for (const auto& [verb, option] : all_options(root)) {
    if (option.choices.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(verb + ':' + name);
    if (patterns.empty()) patterns.push_back(verb + ':' + verb);
    out << "      " << joined(patterns, "|") << ") words='" << joined(option.choices, " ")
        << "' ;;\n";
  }
  out << "    esac\n  fi\n"
         "  [[ -z $words ]] || COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
         "complete -o default -F _graft graft\n";
  return out.str();
}

/// Between single quotes, with `special` characters behind a backslash.
std::string quoted(const std::string& text, std::string_view special) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result + "'";
}

std::string zsh_action(const OptionFacts& option) {
  if (option.takes_file()) return "_files";
  return option.choices.empty() ? "" : "(" + joined(option.choices, " ") + ")";
}

std::string zsh_option(const OptionFacts& option) {
  if (!option.positional.empty()) {
    return quoted("*:" + option.positional + ":" + zsh_action(option), "");
  }
  const std::string names = joined(option.names, ",");
  // Each name is a word of its own: {-q,--quiet}'[results only]'.
  std::string line = option.names.size() > 1 ? "{" + names + "}" : names;
  std::string help;
  for (const char c : option.description) help += c == '[' || c == ']' ? '|' : c;
  line += quoted("[" + help + "]", "\\:");
  if (!option.value.empty()) line += quoted(":value:" + zsh_action(option), "");
  return line;
}

std::string zsh(const CLI::App& root) {
  std::ostringstream out;
  out << "#compdef graft\n_graft() {\n  local -a verbs\n  verbs=(\n";
  for (const CLI::App* verb : verbs_of(root)) {
    out << "    " << quoted(verb->get_name() + ":" + verb->get_description(), "") << '\n';
  }
  out << "  )\n  if ((CURRENT == 2)); then\n    _describe verb verbs\n    return\n  fi\n"
         "  local verb=$words[2]\n  shift words\n  ((CURRENT--))\n  case $verb in\n";
  for (const CLI::App* verb : verbs_of(root)) {
    out << "    " << verb->get_name() << ")\n      _arguments";
    for (const OptionFacts& option : facts_of(*verb)) out << " \\\n        " << zsh_option(option);
    out << " ;;\n";
  }
  // As a file of $fpath this is the body of the function itself when it first runs.
  out << "  esac\n}\n"
         "if [[ $funcstack[1] == _graft ]]; then _graft \"$@\"; else compdef _graft graft; fi\n";
  return out.str();
}

std::string fish(const CLI::App& root) {
  std::ostringstream out;
  out << "# fish completion for graft\n";
  for (const CLI::App* verb : verbs_of(root)) {
    out << "complete -c graft -f -n __fish_use_subcommand -a " << verb->get_name() << " -d "
        << quoted(verb->get_description(), "\\") << '\n';
  }
  for (const auto& [verb, option] : all_options(root)) {
    out << "complete -c graft -n '__fish_seen_subcommand_from " << verb << "'";
    for (const std::string& name : option.names) {
      out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
    }
    if (option.takes_file()) {
      out << " -F" << (option.names.empty() ? "" : " -r");
    } else if (!option.value.empty() && !option.names.empty()) {
      out << " -x";
    }
    if (!option.choices.empty()) out << " -a " << quoted(joined(option.choices, " "), "\\");
    out << " -d " << quoted(option.description, "\\") << '\n';
  }
  return out.str();
}

}  // namespace

Run add_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  limit_to(*app.add_option("SHELL", *shell, "bash, zsh or fish")->required(),
           {"bash", "zsh", "fish"});
  return [shell, &app] {
    const CLI::App& root = *app.get_parent();
    std::cout << (*shell == "bash" ? bash(root) : (*shell == "zsh" ? zsh(root) : fish(root)));
    return ok;
  };
}

}  // namespace graft::cli
