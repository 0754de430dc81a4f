#include "tools/graft/settings.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "tools/graft/config_file.h"

namespace graft::cli {
namespace {

/// Values of an option, and where they were said.
struct Setting {
  std::vector<std::string> values;
  std::string origin;
};

Setting from_environment(const std::string& verb, const CLI::Option& option) {
  for (const std::string& name : environment_names(verb, option)) {
    const char* const value = std::getenv(name.c_str());
    if (value != nullptr && *value != '\0') return {{value}, name};
  }
  return {};
}

}  // namespace

RequiredLater::RequiredLater(CLI::App& app) {
  for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (CLI::Option* option : verb->get_options()) {
      if (!option->get_required()) continue;
      required_.push_back(option);
      option->required(false);
    }
  }
}

RequiredLater::~RequiredLater() {
  for (CLI::Option* option : required_) option->required();
}

void RequiredLater::check(const CLI::App& verb) const {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 && std::ranges::find(required_, option) != required_.end()) {
      throw CLI::RequiredError(option->get_name());
    }
  }
}

std::vector<std::string> environment_names(const std::string& verb, const CLI::Option& option) {
  if (option.get_lnames().empty() || !takes_settings(option)) return {};
  std::string name = option.get_lnames().front();
  std::string prefix = verb;
  for (std::string* part : {&name, &prefix}) {
    std::ranges::transform(*part, part->begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(c));
    });
  }
  std::vector<std::string> names{"GRAFT_" + prefix + "_" + name};
  if (verb != "new" && verb != "edit") names.push_back("GRAFT_" + name);
  return names;
}

void apply_settings(CLI::App& verb) {
  CLI::Option* const config = verb.get_option("--config");
  if (config->count() == 0) {
    const Setting path = from_environment(verb.get_name(), *config);
    give(*config, path.values, path.origin);
  }
  std::optional<ConfigFile> file;
  if (config->count() > 0) file.emplace(verb, config->as<std::string>());
  for (CLI::Option* option : verb.get_options()) {
    if (option->count() > 0 || option == config || !takes_settings(*option)) continue;
    Setting setting = from_environment(verb.get_name(), *option);
    if (setting.values.empty() && file) setting = {file->of(*option), file->path()};
    give(*option, setting.values, setting.origin);
  }
}

}  // namespace graft::cli
