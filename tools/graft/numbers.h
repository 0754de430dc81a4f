#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace graft::cli {

/// The number that the whole text is; nothing if it is none, or beyond what T holds.
template <class T>
std::optional<T> number_in(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

/// Those of "1x28x28", with `by` between them; nothing if one of them is none.
template <class T>
std::optional<std::vector<T>> numbers_in(std::string_view list, char by) {
  std::vector<T> numbers;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(by, at), list.size());
    const std::optional<T> number = number_in<T>(list.substr(at, end - at));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    at = end + 1;
  }
  return numbers;
}

}  // namespace graft::cli
