#include "tools/graft/run_settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/closest.h"
#include "core/base/error.h"
#include "io/file.h"

namespace graft::cli {
namespace {

using Json = nlohmann::ordered_json;

/// They say where and how a run is shown, not what is computed.
constexpr std::array<std::string_view, 10> kNoSettings{
    "help", "config", "resume", "run", "no-run", "json", "dry-run", "quiet", "verbose", "version"};

/// "--epochs" and "MODEL" as "epochs" and "model".
std::string key_of(const CLI::Option& option) {
  std::string name = option.get_name();
  if (name.starts_with("--")) return name.substr(2);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

CLI::Option* find_option(CLI::App& verb, const std::string& key) {
  for (CLI::Option* option : verb.get_options()) {
    if (key_of(*option) == key) return option;
  }
  return nullptr;
}

bool is_setting(const CLI::Option& option) {
  return std::ranges::find(kNoSettings, key_of(option)) == kNoSettings.end();
}

/// A number where the text is one.
Json json_of(const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_number() ? parsed : Json(text);
}

Json json_of(const CLI::Option& option) {
  if (option.count() == 0) {
    const std::string text = option.get_default_str();
    return text.empty() ? Json() : json_of(text);
  }
  if (option.get_items_expected_max() == 0) return true;  // a flag
  const std::vector<std::string>& results = option.results();
  const bool is_joined = option.get_delimiter() != '\0';
  if (option.get_items_expected_max() == 1 || (results.size() == 1 && !is_joined)) {
    return json_of(results.back());
  }
  Json list = Json::array();
  for (const std::string& result : results) list.push_back(json_of(result));
  return list;
}

/// What the option came to, with what it says by pattern: [0.05, "head.*=0.5"].
Json with_patterns(const Json& value, const CLI::Option& option) {
  const bool is_joined = option.get_delimiter() != '\0';
  if (option.get_items_expected_max() == 1 || is_joined) return value;
  Json list = Json::array({value});
  for (const std::string& result : option.results()) {
    if (result.find('=') != std::string::npos) list.push_back(result);
  }
  return list.size() == 1 ? value : list;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Options are f32 where they are no whole numbers.
bool is_same(const Json& a, const Json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  return a == b || a.get<float>() == b.get<float>();
}

/// Of an option that is said several times, a run has recorded too what its number came to where
/// the command left it open: [0.05, "head.*=0.5"].
bool is_same_list(const Json& given, const Json& recorded) {
  const auto list_of = [](const Json& value) {
    return value.is_array() ? value : Json::array({value});
  };
  const Json mine = list_of(given);
  const Json theirs = list_of(recorded);
  const auto holds = [](const Json& list, const Json& item) {
    return std::ranges::any_of(list, [&](const Json& other) { return is_same(item, other); });
  };
  return std::ranges::all_of(mine, [&](const Json& item) { return holds(theirs, item); }) &&
         std::ranges::all_of(theirs, [&](const Json& item) {
           return holds(mine, item) || (item.is_number() && recorded.is_array());
         });
}

void take(CLI::Option& option, const Json& value) {
  if (value.is_null() || value == false) return;
  if (!value.is_array()) {
    option.add_result(text_of(value));
    return;
  }
  const bool is_repeated = option.get_trigger_on_parse();  // each time with a list of its own
  for (const Json& item : value) {
    if (is_repeated) option.clear();
    option.add_result(text_of(item));
    if (is_repeated) option.run_callback();
  }
}

}  // namespace

Json settings_of(const CLI::App& verb, const Json& resolved) {
  Json settings = Json::object();
  for (const CLI::Option* option : verb.get_options()) {
    if (!is_setting(*option)) continue;
    const std::string key = key_of(*option);
    const Json value =
        resolved.contains(key) ? with_patterns(resolved[key], *option) : json_of(*option);
    if (!value.is_null()) settings[key] = value;
  }
  return settings;
}

void take_settings(CLI::App& verb, const Json& settings, const std::filesystem::path& file) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (is_setting(*option)) names.push_back(key_of(*option));
  }
  for (const auto& [key, value] : settings.items()) {
    CLI::Option* const option = find_option(verb, key);
    if (option == nullptr || !is_setting(*option)) {
      const auto close = closest(key, std::vector<std::string_view>(names.begin(), names.end()), 1);
      throw CLI::ValidationError(
          file.string(), text("'", key, "' is no setting",
                              close.empty() ? "" : "; did you mean '" + close.front() + "'?"));
    }
    if (option->count() == 0) take(*option, value);
  }
}

std::vector<std::string> contradictions(const CLI::App& verb, const Json& settings,
                                        const std::vector<std::string>& free) {
  std::vector<std::string> found;
  for (const CLI::Option* option : verb.get_options()) {
    const std::string key = key_of(*option);
    if (option->count() == 0 || !is_setting(*option)) continue;
    if (std::ranges::find(free, key) != free.end()) continue;
    const Json given = json_of(*option);
    const Json recorded = settings.contains(key) ? settings[key] : Json();
    if (is_same_list(given, recorded) || given == "auto") continue;
    const Json old = recorded.is_null() ? Json("none") : recorded;
    found.push_back(
        text(option->get_name(), " ", text_of(given), " (the run has ", text_of(old), ")"));
  }
  return found;
}

Json read_settings(const std::filesystem::path& file) {
  constexpr std::uint64_t kMostBytes = 1 << 24;
  const Json json = Json::parse(read_file(file, kMostBytes), nullptr, false);
  if (!json.is_object()) fail(ErrorKind::io, "'", file.string(), "' holds no JSON object");
  const Json settings = json.contains("settings") ? json["settings"] : json;
  if (!settings.is_object()) fail(ErrorKind::io, "'", file.string(), "': settings is no object");
  return settings;
}

}  // namespace graft::cli
