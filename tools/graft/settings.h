#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

// Options from elsewhere than the command line. First the command line counts, then the
// environment, then the file that --config names, then the default.
namespace graft::cli {

/// While it lives, a verb may be parsed without the options that it requires: they may come from
/// elsewhere.
class RequiredLater {
 public:
  explicit RequiredLater(CLI::App& app);
  ~RequiredLater();
  RequiredLater(const RequiredLater&) = delete;
  RequiredLater& operator=(const RequiredLater&) = delete;

  /// Throws CLI::RequiredError that names an option of the verb that nothing has said.
  void check(const CLI::App& verb) const;

 private:
  std::vector<CLI::Option*> required_;
};

/// The variables that set an option of a verb, the one that counts first: "GRAFT_TRAIN_LR",
/// "GRAFT_LR". Verbs that write what they are told (`new`, `edit`) have the first only.
std::vector<std::string> environment_names(const std::string& verb, const CLI::Option& option);

/// Gives the options that the command line left out what the environment or --config says.
/// Throws CLI::ParseError that names where a wrong value comes from, graft::Error if the file
/// cannot be read, holds no JSON object, or has a member that is no option of the verb.
void apply_settings(CLI::App& verb);

}  // namespace graft::cli
