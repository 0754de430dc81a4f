#include "tools/graft/options.h"

#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "tools/graft/format_internal.h"

namespace graft::cli {
namespace {

std::vector<std::string> split(const std::string& list, char by) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(by, at), list.size());
    parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// CLI11's names of types, in the words of a user.
std::string value_name(const std::string& type) {
  const std::string bare = type.substr(0, type.find_first_of(" :"));  // behind it stand its checks
  if (bare == "INT" || bare == "UINT") return "N";
  if (bare == "FLOAT") return "NUMBER";
  return bare;
}

/// NUMBER of "NUMBER|auto" stands for values, auto is one.
bool is_metavar(const std::string& word) {
  return !word.empty() && std::isupper(static_cast<unsigned char>(word.front())) != 0;
}

}  // namespace

std::string one_of(const std::vector<std::string>& names) {
  return joined(names, "|");
}

void limit_to(CLI::Option& option, const std::vector<std::string>& names) {
  option.type_name(one_of(names))->check(CLI::IsMember(names).description(""));
}

CLI::Validator between(double least, double most) {
  const auto check = [least, most](const std::string& value) {
    double number = 0.0;
    const bool fits = CLI::detail::lexical_cast(value, number) && number >= least && number <= most;
    return fits ? std::string() : text("'", value, "' is no number from ", least, " to ", most);
  };
  return {check, ""};
}

CLI::Validator not_empty() {
  const auto check = [](const std::string& value) {
    return value.empty() ? std::string("the value is empty; give one, or leave the option out")
                         : std::string();
  };
  return {check, ""};
}

std::string OptionFacts::name() const {
  const auto is_long = [](const std::string& name) { return name.starts_with("--"); };
  const auto at = std::ranges::find_if(names, is_long);
  return at == names.end() ? positional : *at;
}

bool OptionFacts::takes_file() const {
  return value.starts_with("FILE") || value.starts_with("DIR") ||
         (!positional.empty() && choices.empty());
}

std::string OptionFacts::usage() const {
  if (!positional.empty()) return positional;
  return joined(names) + (value.empty() ? "" : ' ' + value);
}

std::string OptionFacts::help() const {
  return description + (required && positional.empty() ? " (required)" : "") +
         (preset.empty() ? "" : " (default: " + preset + ")");
}

OptionFacts facts_of(const CLI::Option& option) {
  OptionFacts facts;
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  if (facts.names.empty()) facts.positional = option.get_name(true);
  if (option.get_expected_max() > 0) {
    facts.value = value_name(option.get_type_name());
    if (facts.value.find('|') != std::string::npos) {
      facts.choices = split(facts.value, '|');
      std::erase_if(facts.choices, is_metavar);
    }
  }
  facts.description = option.get_description();
  constexpr std::size_t kLongList = 40;
  if (facts.value.size() > kLongList) {
    facts.description += "; one of " + facts.value;
    std::ranges::replace(facts.description, '|', ' ');
    facts.value = "NAME";
  }
  facts.group = option.get_group();
  facts.preset = option.get_default_str();
  facts.required = option.get_required();
  return facts;
}

std::vector<const CLI::App*> verbs_of(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<OptionFacts> facts_of(const CLI::App& verb) {
  std::vector<OptionFacts> all;
  for (const CLI::Option* option : verb.get_options()) all.push_back(facts_of(*option));
  return all;
}

std::vector<std::string> groups_of(const std::vector<OptionFacts>& options) {
  std::vector<std::string> groups;
  for (const OptionFacts& option : options) {
    if (std::ranges::find(groups, option.group) == groups.end()) groups.push_back(option.group);
  }
  return groups;
}

std::string usage_of(const CLI::App& verb) {
  if (verb.get_parent() == nullptr) return verb.get_name() + " VERB [options]";
  std::string line = verb.get_parent()->get_name() + ' ' + verb.get_name();
  for (const OptionFacts& option : facts_of(verb)) {
    if (!option.positional.empty()) {
      line += option.required ? " " + option.positional : " [" + option.positional + "]";
    } else if (option.required) {
      line += ' ' + option.name() + ' ' + option.value;
    }
  }
  return line + " [options]";
}

}  // namespace graft::cli
