#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

// Options of a verb as a JSON object, {"epochs": 2, "data": "fashion-mnist", ...}: what --config
// names, and what a run keeps in config.json below "settings".
namespace graft::cli {

/// Whether the option may come from elsewhere than the command line.
bool takes_settings(const CLI::Option& option);

/// What the option is called there: "lr" of --lr, "model" of the positional MODEL.
std::string key_of(const CLI::Option& option);

class ConfigFile {
 public:
  /// Throws Error{io} if it cannot be read, Error{argument} if it holds no JSON object or has a
  /// member that is no option of the verb.
  ConfigFile(const CLI::App& verb, const std::filesystem::path& path);

  const std::string& path() const { return path_; }
  /// What it says of the option, by any of its names; empty where it says nothing, null or "".
  std::vector<std::string> of(const CLI::Option& option) const;

 private:
  std::string path_;
  std::map<const CLI::Option*, std::vector<std::string>> values_;
};

/// Gives the option these values, as the command line would. Throws CLI::ValidationError that names
/// `origin` if one is wrong.
void give(CLI::Option& option, const std::vector<std::string>& values, const std::string& origin);

}  // namespace graft::cli
