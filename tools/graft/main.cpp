#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>

#include "core/base/closest.h"
#include "core/base/limits.h"
#include "graft/version.h"
#include "tools/graft/command_line.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/help.h"
#include "tools/graft/numbers.h"
#include "tools/graft/options.h"
#include "tools/graft/plain_output.h"
#include "tools/graft/ranks.h"
#include "tools/graft/settings.h"
#include "tools/graft/verb.h"
#include "tools/graft/verbosity.h"

namespace graft::cli {
namespace {

constexpr std::array<Verb, 18> kVerbs{{
    {"new", "write a fresh net as ONNX", "Models", "new lenet --input 1x28x28 --out lenet.onnx",
     add_new},
    {"inspect", "show what a model holds, costs, and whether it can be trained", "Models",
     "inspect lenet.onnx --batch 64", add_inspect},
    {"edit", "cut, extend and merge models; set batch and opset", "Models",
     "edit trained.onnx --truncate relu3 --append linear:10:name=head --out cut.onnx", add_edit},
    {"train", "train a model on a data set", "Training",
     "train lenet.onnx --data fashion-mnist --epochs 2 --out trained.onnx", add_train},
    {"lr-find", "find the learning rate to train a model with", "Training",
     "lr-find lenet.onnx --data fashion-mnist", add_lr_find},
    {"eval", "measure a model on a data set", "Training", "eval trained.onnx --data fashion-mnist",
     add_eval},
    {"predict", "say what classes a model sees in samples of a data set", "Training",
     "predict trained.onnx --data fashion-mnist --limit 10", add_predict},
    {"plot", "draw the curves of runs in the terminal", "Training", "plot runs/lenet-1", add_plot},
    {"report", "make a page of one or several runs: curves, mistakes, net, times, settings",
     "Training", "report runs/lenet-1 runs/lenet-2 --out both.html", add_report},
    {"run", "compute a model's outputs for inputs from files", "Running",
     "run lenet.onnx --input input=x.npy --out outputs", add_run},
    {"bench", "measure the time and memory of a step", "Running",
     "bench lenet.onnx --train --batch 64 --profile", add_bench},
    {"test", "run ONNX backend-test folders and training cases", "Running", "test cases/test_relu",
     add_test},
    {"export-step", "write a training step as ONNX that other runtimes run", "Running",
     "export-step lenet.onnx --optimizer adam --batch 32 --out step", add_export_step},
    {"ops", "list what a small build for some models links", "Running",
     "ops lenet.onnx > lenet.ops", add_ops},
    {"devices", "list what can be computed on", "This machine", "devices", add_devices},
    {"doctor", "show what this build, machine and environment offer", "This machine", "doctor",
     add_doctor},
    {"completion", "print a script by which a shell completes verbs and options", "This machine",
     "completion bash > ~/.local/share/bash-completion/completions/graft", add_completion},
    {"man", "print the manual page", "This machine", "man | man -l -", add_man},
}};

/// Messages may list things on lines of their own; scripts and logs want one line an error.
std::string one_line(const std::string& message) {
  std::string line;
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (message[i] != '\n') {
      line += message[i];
      continue;
    }
    while (i + 1 < message.size() && (message[i + 1] == ' ' || message[i + 1] == '\n')) ++i;
    if (i + 1 < message.size()) line += line.ends_with(':') ? " " : "; ";
  }
  return line;
}

void report_error(std::string_view kind, const std::string& message, bool saves = false) {
  const std::string rank = before_report(saves);
  std::cout.flush();
  std::cerr << "graft: " << rank << kind << ": " << one_line(message) << std::endl;
}

/// "unknown argument '--epoch'; did you mean '--epochs'?; valid: --data, ..."; empty where all are
/// known.
std::string unknown_argument(const CLI::App& app, const CLI::App& parsed) {
  const std::vector<std::string> left = parsed.remaining();
  auto at = std::find_if(left.begin(), left.end(),
                         [](const std::string& word) { return word.starts_with('-'); });
  // Behind a verb that there is not, nothing is known of options.
  if (at == left.end() || &app == &parsed) at = left.begin();
  if (at == left.end()) return {};
  const bool is_verb = &app == &parsed && !at->starts_with('-');
  std::vector<std::string> names;
  if (is_verb) {
    for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  } else {
    for (const CLI::Option* option : parsed.get_options()) names.push_back(option->get_name());
  }
  const std::vector<std::string> close =
      closest(*at, std::vector<std::string_view>(names.begin(), names.end()), 1);
  return text(is_verb ? "unknown verb '" : "unknown argument '", *at, "'",
              close.empty() ? "" : "; did you mean '" + close.front() + "'?",
              "; valid: ", joined(names));
}

ExitCode wrong_arguments(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<const CLI::App*> verbs =
      app.get_subcommands([](const CLI::App* verb) { return verb->parsed(); });
  const CLI::App& parsed = verbs.empty() ? app : *verbs.front();
  const std::string unknown = unknown_argument(app, parsed);
  const std::string verb = verbs.empty() ? std::string() : parsed.get_name() + ": ";
  std::string message = error.what();
  if (message == "A subcommand is required") message = "a verb is required; see graft --help";
  report_error("argument", verb + (unknown.empty() ? message : unknown));
  return wrong_use;
}

/// "--allow NAME=NUMBER", where NUMBER may be like 2G.
void allow(const std::string& text) {
  const std::size_t split = std::min(text.find('='), text.size());
  Limits changed = limits();
  std::vector<std::string> valid;
  for (const NamedLimit& limit : named_limits()) {
    valid.emplace_back(limit.name);
    if (limit.name != text.substr(0, split)) continue;
    std::string number = text.substr(std::min(split + 1, text.size()));
    const std::string error = number.empty() ? "empty" : CLI::AsSizeValue(false)(number);
    const std::optional<std::int64_t> value = number_in<std::int64_t>(number);
    if (!error.empty() || !value || *value < 0) {
      throw CLI::ValidationError("--allow", "'" + text + "' has no number, wanted one like 2G");
    }
    changed.*limit.value = *value;
    return set_limits(changed);
  }
  throw CLI::ValidationError("--allow", "'" + text + "' names no limit; valid: " + joined(valid));
}

void add_allow(CLI::App& app) {
  app.add_option_function<std::vector<std::string>>(
      "--allow", [](const std::vector<std::string>& all) { std::ranges::for_each(all, allow); },
      "NAME=NUMBER: raises a limit of what a file may ask for, as the error about it says");
}

/// An option that may come several times takes one value each time: what follows is the model.
void take_single_values(CLI::App& verb) {
  for (CLI::Option* const option : verb.get_options()) {
    if (option->nonpositional()) option->allow_extra_args(false);
    if (option->get_items_expected_max() > 0) option->transform(not_empty());
  }
}

/// "graft help VERB" is "graft VERB --help".
std::vector<const char*> words_of(int argc, char** argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (words.size() > 1 && words[1] == std::string_view("help")) {
    words.erase(words.begin() + 1);
    words.push_back("--help");
  }
  return words;
}

/// Whether --help or --version stand behind a verb that there is not.
bool has_unknown_verb(const CLI::App& app) {
  const std::vector<std::string> left = app.remaining();
  return app.get_subcommands().empty() && !left.empty();
}

void add_general(CLI::App& app, std::string& config) {
  const OptionGroup group(app, "General");
  app.add_option("--config", config,
                 "settings as JSON, like {\"epochs\": 2}; the command line and the environment "
                 "(GRAFT_EPOCHS=2) count before it")
      ->type_name("FILE");
  app.add_flag("--quiet,-q", verbosity().quiet, "results and errors only");
  app.add_flag("--verbose,-v", verbosity().verbose, "names in full");
  add_allow(app);
}

/// The order is that of the help: what is particular to a verb stands first.
ExitCode run_verb(int argc, char** argv) {
  CLI::App app("Graft trains ONNX models.", "graft");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("--help,-h", "show this, or with a verb its options");
  app.set_version_flag("--version", std::string(kVersion), "show the version");
  app.require_subcommand(1);
  std::string config;
  std::vector<std::pair<CLI::App*, Run>> verbs;
  for (const Verb& verb : kVerbs) {
    CLI::App* const added = app.add_subcommand(verb.name, verb.description)->group(verb.group);
    added->set_help_flag();
    verbs.emplace_back(added, verb.add(*added));
    add_general(*added, config);
    added->set_help_flag("--help,-h", "show this")->group("General");
    take_single_values(*added);
  }
  try {
    const RequiredLater required(app);
    const std::vector<const char*> words = words_of(argc, argv);
    app.parse(static_cast<int>(words.size()), words.data());
    apply_settings(*app.get_subcommands().front());
    required.check(*app.get_subcommands().front());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0 && !has_unknown_verb(app)) {
      return static_cast<ExitCode>(app.exit(error));  // --help
    }
    return wrong_arguments(app, error);
  }
  for (const auto& [verb, run_verb] : verbs) {
    if (verb->parsed()) return run_verb();
  }
  return wrong_use;
}

}  // namespace

const Verb* find_verb(const std::string& name) {
  const auto* const at = std::ranges::find(kVerbs, name, &Verb::name);
  return at == kVerbs.end() ? nullptr : at;
}

ExitCode exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::argument:
    case ErrorKind::device:
      return wrong_use;
    case ErrorKind::memory:
      return out_of_memory;
    case ErrorKind::numeric:
      return not_finite;
    case ErrorKind::io:
    case ErrorKind::model:
    case ErrorKind::shape:
    case ErrorKind::type:
    case ErrorKind::unsupported:
      return bad_input;
  }
  return bad_input;
}

namespace {

/// Says what was thrown.
ExitCode report_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const graft::Error& error) {
    report_error(graft::name(error.kind()), error.what(), error.kind() == ErrorKind::numeric);
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    report_error("memory", "out of memory");
    return out_of_memory;
  } catch (const std::exception& error) {
    report_error("internal", error.what());
    return bad_input;
  }
}

}  // namespace

int command_line(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is then an error like a full disk
  const PlainOutput plain_output(std::cout);
  const PlainOutput plain_errors(std::cerr);
  try {
    const ExitCode code = run_verb(argc, argv);
    leave_ranks();
    if (std::cout.flush()) return code;
    report_error("io", "cannot write to the standard output");
    return bad_input;
  } catch (...) {
    const ExitCode code = report_of(std::current_exception());
    end_ranks(code);
    return code;
  }
}

}  // namespace graft::cli
