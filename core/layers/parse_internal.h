#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/layers/initializer.h"

// How layers and initializers are read from text.

namespace graft {

inline std::vector<std::string_view> split(std::string_view list, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = list.find(separator);
    parts.push_back(list.substr(0, end));
    if (end == std::string_view::npos) return parts;
    list.remove_prefix(end + 1);
  }
}

/// What follows the name of a layer, or of an initializer. Each argument is taken once; `finish`
/// refuses those left.
class Arguments {
 public:
  /// `who` starts errors: "layer 'linear:ten'".
  Arguments(std::string who, std::string_view usage, std::vector<std::string_view> words)
      : who_(std::move(who)), usage_(usage), words_(std::move(words)) {}

  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::argument, who_, ": ", what, "; write it as ", usage_);
  }

  /// The argument without a key; nullopt when there is none.
  std::optional<std::string_view> positional() {
    return take([](std::string_view word) { return word.find('=') == word.npos; });
  }
  std::optional<std::string_view> keyed(std::string_view key) {
    const auto word = take([&](std::string_view candidate) {
      return candidate.size() > key.size() && candidate[key.size()] == '=' &&
             candidate.starts_with(key);
    });
    return word ? std::optional(word->substr(key.size() + 1)) : std::nullopt;
  }

  template <class T>
  T number(std::string_view word) const {
    T value{};
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    bool fits = !word.empty() && error == std::errc() && stop == end;
    if constexpr (std::is_floating_point_v<T>) fits = fits && std::isfinite(value);
    if (!fits) {
      refuse(
          text("'", word, "' is no ", std::is_integral_v<T> ? "integer" : "number", " that fits"));
    }
    return value;
  }
  template <class T>
  T number_or(std::optional<std::string_view> word, T fallback) const {
    return word ? number<T>(*word) : fallback;
  }
  /// "3x3" -> 3, 3.
  std::vector<std::int64_t> numbers(std::string_view word) const {
    std::vector<std::int64_t> values;
    for (const std::string_view part : split(word, 'x')) {
      values.push_back(number<std::int64_t>(part));
    }
    return values;
  }
  std::vector<std::int64_t> numbers_or(std::optional<std::string_view> word,
                                       const std::vector<std::int64_t>& fallback) const {
    return word ? numbers(*word) : fallback;
  }
  bool flag(std::string_view key, bool fallback) {
    const auto word = keyed(key);
    if (!word) return fallback;
    if (*word != "0" && *word != "1") refuse(text(key, " is '", *word, "', wanted 0 or 1"));
    return *word == "1";
  }
  std::optional<std::uint64_t> seed() {
    const auto word = keyed("seed");
    return word ? std::optional(number<std::uint64_t>(*word)) : std::nullopt;
  }
  /// Those of `init=`; nothing without it.
  std::optional<Init> init();
  std::string name() { return std::string(keyed("name").value_or("")); }

  void finish() const {
    if (!words_.empty()) refuse(text("'", words_[0], "' is not understood"));
  }

 private:
  template <class Matches>
  std::optional<std::string_view> take(const Matches& matches) {
    const auto found = std::find_if(words_.begin(), words_.end(), matches);
    if (found == words_.end()) return std::nullopt;
    const std::string_view word = *found;
    words_.erase(found);
    return word;
  }

  std::string who_;
  std::string_view usage_;
  std::vector<std::string_view> words_;
};

/// What the words say of the initializer of that name.
Init read_init(std::string_view name, Arguments& arguments);

}  // namespace graft
