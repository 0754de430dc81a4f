#include "tools/graft/run_settings.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/group_arguments.h"
#include "tools/graft/numbers.h"

namespace graft::cli {
namespace {

using Json = nlohmann::ordered_json;

/// They say where and how a run is shown, not what is computed.
constexpr std::array<std::string_view, 11> kNoSettings{"help",    "config",  "resume",   "run",
                                                       "no-run",  "json",    "dry-run",  "quiet",
                                                       "verbose", "version", "debug-nan"};

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
  const bool is_one = values.size() == 1 && takes_patterns(option);
  if (option.get_items_expected_max() == 1 || is_one) return json_of(values.back());
  Json list = Json::array();
  for (const std::string& value : values) list.push_back(json_of(value));
  return list;
}

/// What the option came to, with what it says by pattern: [0.05, "head.*=0.5"].
Json with_patterns(const Json& value, const CLI::Option& option) {
  if (!takes_patterns(option)) return value;
  Json list = Json::array({value});
  for (const std::string& said : given(option)) {
    if (is_by_pattern(said)) list.push_back(said);
  }
  return list.size() == 1 ? value : list;
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

void drop_plain(std::vector<std::string>& values) {
  std::erase_if(values, [](const std::string& value) { return !is_by_pattern(value); });
}

/// Of an option that is said by pattern, too. A run has recorded also what the plain value came to
/// where the command left it open: 0.05, "head.*=0.5".
bool is_same_list(std::vector<std::string> now, std::vector<std::string> then) {
  std::ranges::stable_partition(now, std::not_fn(is_by_pattern));
  std::ranges::stable_partition(then, std::not_fn(is_by_pattern));
  if (is_by_pattern(now.front()) || now.front() == "auto") {
    drop_plain(now);
    drop_plain(then);
  }
  return std::ranges::equal(now, then, is_same);
}

bool is_same(const CLI::Option& option, const std::vector<std::string>& now,
             const std::vector<std::string>& then) {
  if (takes_patterns(option)) return is_same_list(now, then);
  const std::string one = joined(now, ",");
  if (key_of(option) == "data") return absolute_spec(one) == absolute_spec(joined(then, ","));
  return one == "auto" || is_same(one, joined(then, ","));
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

std::string absolute_spec(const std::string& spec) {
  const std::size_t colon = spec.find(':');
  if (colon == std::string::npos || colon + 1 == spec.size()) return spec;
  std::error_code error;  // of a working folder that is gone
  std::filesystem::path place = std::filesystem::absolute(spec.substr(colon + 1), error);
  if (error) return spec;
  place = place.lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  return spec.substr(0, colon + 1) + place.string();
}

std::vector<std::string> contradictions(const CLI::App& verb, const ConfigFile& run,
                                        const std::vector<std::string>& free) {
  std::vector<std::string> found;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0 || !is_setting(*option)) continue;
    if (std::ranges::find(free, key_of(*option)) != free.end()) continue;
    const std::vector<std::string> now = given(*option);
    const std::vector<std::string> then = run.of(*option);
    if (is_same(*option, now, then)) continue;
    found.push_back(text(option->get_name(), " ", joined(now, ","), " (the run has ",
                         then.empty() ? "none" : joined(then, ","), ")"));
  }
  return found;
}

}  // namespace graft::cli
