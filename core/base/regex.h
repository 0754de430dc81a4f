#pragma once

#include <memory>
#include <string_view>

namespace graft {

/// A regular expression in RE2's syntax (which ONNX names for RegexFullMatch), matched by RE2 in
/// time linear in the text and without recursion, so that neither pattern nor text can hang or end
/// a run. Both are UTF-8. Copies share the compiled pattern; threads may match at once.
/// Source: https://github.com/google/re2/wiki/Syntax.
class Regex {
 public:
  /// Throws Error{argument} if the pattern is malformed (more than 1,000 counted repetitions are),
  /// Error{unsupported} if it takes more than RE2's 8 MiB, and always in a build without RE2.
  explicit Regex(std::string_view pattern);

  /// Whether the whole text matches, not a part of it.
  bool full_match(std::string_view text) const;

 private:
  struct Program;
  std::shared_ptr<const Program> program_;
};

}  // namespace graft
