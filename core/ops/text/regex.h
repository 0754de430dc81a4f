#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace graft {

/// A regular expression in RE2's syntax, matched in time linear in the text (a Thompson automaton,
/// no backtracking), so that no pattern from a file can hang a run. Texts and patterns are UTF-8;
/// bytes that are not count as themselves. Not taken: flags, Unicode classes (\p) and \Q...\E.
/// Source: R. Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009.
class Regex {
 public:
  /// Throws Error{model} for a malformed pattern, Error{unsupported} for what is not taken, and for
  /// repetitions that make more than 20,000 states.
  explicit Regex(std::string_view pattern);

  bool full_match(std::string_view text) const;

 private:
  friend class RegexCompiler;

  /// Code points [first, last].
  struct Range {
    char32_t first, last;
  };
  struct Set {
    std::vector<Range> ranges;
    bool negated = false;
    bool has(char32_t c) const;
  };
  enum class Op : std::uint8_t { set, split, jump, begin, end, word_edge, no_word_edge, match };
  struct Instruction {
    Op op;
    std::size_t set = 0;              // of `sets_`
    std::size_t next = 0, other = 0;  // where to go on
  };
  struct Threads;

  void follow(Threads& threads, std::size_t start, std::u32string_view text, std::size_t at) const;

  std::vector<Set> sets_;
  std::vector<Instruction> program_;
};

}  // namespace graft
