#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace graft {

/// Takes the first line off `lines`, without its end; false when none is left.
inline bool take_line(std::string_view& lines, std::string_view& line) {
  if (lines.empty()) return false;
  const std::size_t end = std::min(lines.find('\n'), lines.size());
  line = lines.substr(0, end);
  lines.remove_prefix(std::min(end + 1, lines.size()));
  return true;
}

/// Takes the first word off, before which blanks and line ends may stand; empty when none is left.
inline std::string_view take_word(std::string_view& words) {
  constexpr std::string_view kBlanks = " \t\r\n";
  words.remove_prefix(std::min(words.find_first_not_of(kBlanks), words.size()));
  const std::string_view word = words.substr(0, words.find_first_of(kBlanks));
  words.remove_prefix(word.size());
  return word;
}

/// The same of a whole number; 0 for a word that does not begin with one.
inline std::int64_t take_integer(std::string_view& words) {
  const std::string_view word = take_word(words);
  std::int64_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

}  // namespace graft
