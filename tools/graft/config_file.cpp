#include "tools/graft/config_file.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/closest.h"
#include "core/base/error.h"
#include "io/file.h"
#include "tools/graft/run_record.h"

namespace graft::cli {
namespace {

using Json = nlohmann::ordered_json;

/// All names of the option: "lr" and "learning-rate".
std::vector<std::string> keys_of(const CLI::Option& option) {
  std::vector<std::string> keys = option.get_lnames();
  if (keys.empty()) {
    std::string key = option.get_name(true);
    std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::tolower(c); });
    keys.push_back(key);
  }
  return keys;
}

const CLI::Option& find_option(const CLI::App& verb, const std::string& name,
                               const std::string& file) {
  std::vector<std::string> valid;
  for (const CLI::Option* option : verb.get_options()) {
    if (!takes_settings(*option)) continue;
    const std::vector<std::string> keys = keys_of(*option);
    if (std::ranges::find(keys, name) != keys.end()) return *option;
    valid.push_back(keys.front());
  }
  const std::vector<std::string_view> candidates(valid.begin(), valid.end());
  const std::vector<std::string> close = closest(name, candidates, 1);
  fail(ErrorKind::argument, file, ": unknown setting '", name, "'",
       close.empty() ? "" : "; did you mean '" + close.front() + "'?",
       "; valid: ", quoted_list(valid));
}

[[noreturn]] void fail_as_no_object(const std::string& file, const std::string& why) {
  fail(ErrorKind::argument, file, " holds no JSON object", why,
       "; wanted one like {\"epochs\": 2}");
}

/// Of "[json.exception...] parse error at line 2, column 5: WHY; last read: '...'" the WHY.
std::string cause_of(const std::string& message) {
  const std::size_t column = std::min(message.find(", column "), message.size());
  const std::size_t colon = message.find(": ", column);
  const std::size_t begin = colon == std::string::npos ? 0 : colon + 2;
  return message.substr(begin, message.find("; last read:", begin) - begin);
}

/// ": line 2, column 5"; the parser's own column is 0 where a number ends its line.
std::string place_of(const std::string& content, std::size_t byte) {
  const std::size_t at = std::min(byte == 0 ? 0 : byte - 1, content.size());
  const std::string before = content.substr(0, at);
  const std::size_t line_break = before.rfind('\n');
  const std::size_t column = line_break == std::string::npos ? at : at - line_break - 1;
  return text(": line ", 1 + std::ranges::count(before, '\n'), ", column ", column + 1);
}

Json parse(const std::string& content, const std::string& file) {
  try {
    return Json::parse(content);
  } catch (const Json::parse_error& error) {
    fail_as_no_object(file, place_of(content, error.byte) + ": " + cause_of(error.what()));
  } catch (const Json::exception& error) {  // a number that no double holds
    fail_as_no_object(file, std::string(": ") + error.what());
  }
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

}  // namespace

bool takes_settings(const CLI::Option& option) {
  return option.get_name() != "--help" && option.get_name() != "--version";
}

std::string key_of(const CLI::Option& option) {
  return keys_of(option).front();
}

ConfigFile::ConfigFile(const CLI::App& verb, const std::filesystem::path& path)
    : path_(path.string()) {
  Json json = parse(read_file(path, kMostConfigBytes), path_);
  if (!json.is_object()) fail_as_no_object(path_, "");
  // A recorded run keeps its settings beside what else it remembers.
  if (const auto at = json.find("settings"); at != json.end() && at->is_object()) {
    json = Json(*at);
  }
  for (const auto& [key, value] : json.items()) {
    std::string name = key;
    std::ranges::replace(name, '_', '-');
    const CLI::Option& option = find_option(verb, name, path_);
    const bool is_said = !value.is_null() && value != Json("");
    if (is_said) values_[&option] = as_values(value, key, path_);
  }
}

std::vector<std::string> ConfigFile::of(const CLI::Option& option) const {
  const auto at = values_.find(&option);
  return at == values_.end() ? std::vector<std::string>() : at->second;
}

void give(CLI::Option& option, const std::vector<std::string>& values, const std::string& origin) {
  if (values.empty()) return;
  const bool at_once = option.get_trigger_on_parse();
  try {
    for (const std::string& value : values) {
      if (at_once) option.clear();
      option.add_result(value);
      if (at_once) option.run_callback();
    }
    if (!at_once) option.run_callback();
  } catch (const CLI::ParseError& error) {
    throw CLI::ValidationError(std::string(error.what()) + ", said by " + origin);
  }
}

}  // namespace graft::cli
