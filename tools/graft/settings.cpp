#include "tools/graft/settings.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/closest.h"
#include "core/base/error.h"
#include "io/file.h"

namespace graft::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20U;

/// Values of an option, and where they were said.
struct Setting {
  std::vector<std::string> values;
  std::string origin;
};

bool takes_settings(const CLI::Option& option) {
  return option.get_name() != "--help" && option.get_name() != "--version";
}

/// "learning-rate" of "--learning-rate", "model" of the positional MODEL.
std::vector<std::string> keys_of(const CLI::Option& option) {
  std::vector<std::string> keys = option.get_lnames();
  if (keys.empty()) {
    std::string key = option.get_name(true);
    std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::tolower(c); });
    keys.push_back(key);
  }
  return keys;
}

/// A list within the list of an option that is used several times is one use: "a,b".
std::string as_value(const Json& json, const std::string& key, const std::string& file) {
  if (json.is_array()) {
    std::string list;
    for (const Json& one : json) list += (list.empty() ? "" : ",") + as_value(one, key, file);
    return list;
  }
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number() || json.is_boolean()) return json.dump();
  fail(ErrorKind::argument, file, ": '", key, "' is ", json.type_name(),
       ", wanted text, a number, true or false, or a list of those");
}

std::vector<std::string> as_values(const Json& json, const std::string& key,
                                   const std::string& file) {
  if (!json.is_array()) return {as_value(json, key, file)};
  std::vector<std::string> values;
  for (const Json& one : json) values.push_back(as_value(one, key, file));
  return values;
}

/// What the file says, by the first name of the option; null is as good as left out.
class ConfigFile {
 public:
  ConfigFile(const CLI::App& verb, const std::string& path) : path_(path) {
    const std::string content = read_file(path, kMostBytes);
    Json json = Json::parse(content, nullptr, false);
    if (json.is_discarded() || !json.is_object()) {
      fail(ErrorKind::argument, path, " holds no JSON object, wanted one like {\"epochs\": 2}");
    }
    // A recorded run keeps its settings beside what else it remembers.
    if (const auto at = json.find("settings"); at != json.end() && at->is_object()) json = *at;
    for (const auto& [key, value] : json.items()) {
      std::string name = key;
      std::ranges::replace(name, '_', '-');
      const CLI::Option& option = find(verb, name);
      if (!value.is_null()) settings_[&option] = as_values(value, key, path);
    }
  }

  /// Empty where the file does not say it.
  Setting of(const CLI::Option& option) const {
    const auto at = settings_.find(&option);
    return at == settings_.end() ? Setting{} : Setting{at->second, path_};
  }

 private:
  const CLI::Option& find(const CLI::App& verb, const std::string& name) const {
    std::vector<std::string> valid;
    for (const CLI::Option* option : verb.get_options()) {
      if (!takes_settings(*option)) continue;
      const std::vector<std::string> keys = keys_of(*option);
      if (std::ranges::find(keys, name) != keys.end()) return *option;
      valid.push_back(keys.front());
    }
    const std::vector<std::string_view> candidates(valid.begin(), valid.end());
    const std::vector<std::string> close = closest(name, candidates, 1);
    fail(ErrorKind::argument, path_, ": unknown setting '", name, "'",
         close.empty() ? "" : "; did you mean '" + close.front() + "'?",
         "; valid: ", quoted_list(valid));
  }

  std::string path_;
  std::map<const CLI::Option*, std::vector<std::string>> settings_;
};

Setting from_environment(const std::string& verb, const CLI::Option& option) {
  for (const std::string& name : environment_names(verb, option)) {
    const char* const value = std::getenv(name.c_str());
    if (value != nullptr && *value != '\0') return {{value}, name};
  }
  return {};
}

void give(CLI::Option& option, const Setting& setting) {
  const bool at_once = option.get_trigger_on_parse();
  try {
    for (const std::string& value : setting.values) {
      if (at_once) option.clear();
      option.add_result(value);
      if (at_once) option.run_callback();
    }
    if (!at_once) option.run_callback();
  } catch (const CLI::ParseError& error) {
    throw CLI::ValidationError(std::string(error.what()) + ", said by " + setting.origin);
  }
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
    if (!path.values.empty()) give(*config, path);
  }
  std::optional<ConfigFile> file;
  if (config->count() > 0) file.emplace(verb, config->as<std::string>());
  for (CLI::Option* option : verb.get_options()) {
    if (option->count() > 0 || option == config || !takes_settings(*option)) continue;
    Setting setting = from_environment(verb.get_name(), *option);
    if (setting.values.empty() && file) setting = file->of(*option);
    if (!setting.values.empty()) give(*option, setting);
  }
  // An option may have given values to others.
  for (CLI::Option* option : verb.get_options()) {
    if (option->count() > 0 && !option->get_callback_run()) option->run_callback();
  }
}

}  // namespace graft::cli
