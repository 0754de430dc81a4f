#include "tools/graft/run_settings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/numbers.h"

namespace graft::cli {
namespace {

using Json = nlohmann::ordered_json;

/// They say where and how a run is shown, not what is computed.
constexpr std::array<std::string_view, 10> kNoSettings{
    "help", "config", "resume", "run", "no-run", "json", "dry-run", "quiet", "verbose", "version"};

bool is_setting(const CLI::Option& option) {
  return std::ranges::find(kNoSettings, key_of(option)) == kNoSettings.end();
}

/// What was given: the last use, or all of an option that is a list.
std::vector<std::string> given(const CLI::Option& option) {
  const std::vector<std::string>& results = option.results();
  if (results.empty() || option.get_items_expected_max() > 1) return results;
  return {results.back()};
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
  if (option.get_items_expected_max() == 0) return option.as<bool>();  // a flag
  const std::vector<std::string> values = given(option);
  if (option.get_items_expected_max() == 1) return json_of(values.back());
  Json list = Json::array();
  for (const std::string& value : values) list.push_back(json_of(value));
  return list;
}

template <class T>
std::optional<bool> are_equal(const std::string& a, const std::string& b) {
  const std::optional<T> x = number_in<T>(a);
  const std::optional<T> y = number_in<T>(b);
  return x && y ? std::optional(*x == *y) : std::nullopt;
}

/// Numbers may be written in several ways; options are f32 where they are no whole numbers.
bool is_same(const std::string& a, const std::string& b) {
  if (const auto whole = are_equal<std::uint64_t>(a, b)) return *whole;
  return are_equal<float>(a, b).value_or(a == b);
}

}  // namespace

Json settings_of(const CLI::App& verb, const Json& resolved) {
  Json settings = Json::object();
  for (const CLI::Option* option : verb.get_options()) {
    if (!is_setting(*option)) continue;
    const std::string key = key_of(*option);
    const Json value = resolved.contains(key) ? resolved[key] : json_of(*option);
    if (!value.is_null()) settings[key] = value;
  }
  return settings;
}

std::vector<std::string> contradictions(const CLI::App& verb, const ConfigFile& run,
                                        const std::vector<std::string>& free) {
  std::vector<std::string> found;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 || !is_setting(*option)) continue;
    if (std::ranges::find(free, key_of(*option)) != free.end()) continue;
    const std::string now = joined(given(*option), ",");
    const std::string then = joined(run.of(*option), ",");
    if (is_same(now, then) || now == "auto") continue;
    found.push_back(
        text(option->get_name(), " ", now, " (the run has ", then.empty() ? "none" : then, ")"));
  }
  return found;
}

}  // namespace graft::cli
