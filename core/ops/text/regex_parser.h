#pragma once

#include <memory>
#include <string>
#include <vector>

namespace graft {

/// A pattern as a tree.
struct RegexNode {
  enum class Kind { empty, set, sequence, choice, repeat, begin, end, word_edge, no_word_edge };
  struct Range {
    char32_t first, last;
  };

  Kind kind = Kind::empty;
  std::vector<Range> ranges{};  // of a set
  bool negated = false;
  std::vector<std::unique_ptr<RegexNode>> children{};
  int least = 0;
  int most = -1;  // no limit when negative
};

/// Throws as Regex does.
std::unique_ptr<RegexNode> parse_regex(std::string_view pattern);

/// The code points of UTF-8; a byte that starts no valid sequence is one by itself.
std::u32string code_points(std::string_view text);

}  // namespace graft
