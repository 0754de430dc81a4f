#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tools/graft/verb.h"

// What is known of verbs and their options, in one form for the help, the man page and completion.
namespace graft::cli {

/// Options that are added while it lives stand under this heading of the help.
class OptionGroup {
 public:
  OptionGroup(CLI::App& app, const char* heading)
      : app_(app), outer_(app.option_defaults()->get_group()) {
    app.option_defaults()->group(heading);
  }
  ~OptionGroup() { app_.option_defaults()->group(outer_); }
  OptionGroup(const OptionGroup&) = delete;
  OptionGroup& operator=(const OptionGroup&) = delete;

 private:
  CLI::App& app_;
  std::string outer_;
};

/// "sgd|adam": names of which an option takes one.
std::string one_of(const std::vector<std::string>& names);
/// Lets the option take one of these names and nothing else, and the help list them.
void limit_to(CLI::Option& option, const std::vector<std::string>& names);

/// A check that takes numbers from `least` to `most`, and no NaN, which CLI::Range lets pass.
CLI::Validator between(double least, double most);
/// Refuses empty values: a variable of a shell that is not set would count as an option left out.
CLI::Validator not_empty();

struct OptionFacts {
  /// "--lr", "--learning-rate", with dashes; the short one, if any, first. Empty for a positional.
  std::vector<std::string> names;
  /// "MODEL" of a positional.
  std::string positional;
  /// "FILE", "sgd|adam"; empty for a flag.
  std::string value;
  /// The words that `value` lists, but for those in capitals; empty when it is free.
  std::vector<std::string> choices;
  std::string description;
  std::string group;
  std::string preset;
  bool required = false;

  bool takes_file() const;
  /// "--lr", or "MODEL".
  std::string name() const;
  /// "--lr, --learning-rate NUMBER".
  std::string usage() const;
  /// The description, and what counts where nothing is said.
  std::string help() const;
};

OptionFacts facts_of(const CLI::Option& option);
/// In the order in which they were added.
std::vector<OptionFacts> facts_of(const CLI::App& verb);
/// The headings of the options, in the order of their first option.
std::vector<std::string> groups_of(const std::vector<OptionFacts>& options);
/// "graft train MODEL --data SPEC --out FILE [options]".
std::string usage_of(const CLI::App& verb);
/// All verbs, in the order of the help.
std::vector<const CLI::App*> verbs_of(const CLI::App& root);

/// The row of the verb that is called so; null if there is none.
const Verb* find_verb(const std::string& name);

}  // namespace graft::cli
