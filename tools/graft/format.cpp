#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/graft/format_internal.h"

namespace graft::cli {

std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  const int first = number < 0 ? 1 : 0;
  for (int at = static_cast<int>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string fixed(double number, int digits) {
  if (std::isnan(number)) return "nan";  // whose sign says nothing
  std::array<char, 400> buffer;          // the longest double has 309 digits before the point
  const int length = std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, number);
  return {buffer.data(), static_cast<std::size_t>(length)};
}

namespace {

/// The number over the largest power of `base` that leaves at least 1, with the power's unit.
template <std::size_t n>
std::string scaled(double number, double base, const std::array<const char*, n>& units) {
  std::size_t unit = 0;
  while (number >= base && unit + 1 < n) {
    number /= base;
    ++unit;
  }
  const int digits = unit == 0 ? 0 : (number < 10 ? 2 : (number < 100 ? 1 : 0));
  const std::string_view suffix = units[unit];
  return fixed(number, digits) + (suffix.empty() ? "" : " ") + std::string(suffix);
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024.0,
                std::array<const char*, 5>{"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string short_count(double number) {
  return scaled(number, 1000.0, std::array<const char*, 5>{"", "k", "M", "G", "T"});
}

std::string percent(double share) {
  return fixed(share * 100.0, 2) + " %";
}

std::string shortest(float number) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return {buffer.data(), end};
}

std::string joined(const std::vector<std::string>& words, std::string_view by) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += by;
    list += words[i];
  }
  return list;
}

nlohmann::ordered_json shortest_json(float number) {
  return nlohmann::ordered_json::parse(shortest(number));
}

void print_json(const nlohmann::ordered_json& json) {
  std::cout << json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << std::endl;
}

}  // namespace graft::cli
