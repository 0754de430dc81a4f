#include <re2/re2.h>

#include "core/base/error.h"
#include "core/base/regex.h"

namespace graft {

struct Regex::Program {
  explicit Program(std::string_view pattern)
      : expression({pattern.data(), pattern.size()}, RE2::Quiet) {}

  RE2 expression;
};

Regex::Regex(std::string_view pattern) : program_(std::make_shared<Program>(pattern)) {
  const RE2& made = program_->expression;
  if (made.ok()) return;
  const bool is_too_large = made.error_code() == RE2::ErrorPatternTooLarge;
  fail(is_too_large ? ErrorKind::unsupported : ErrorKind::argument, "'", pattern,
       "' is no regular expression that RE2 takes: ", made.error());
}

bool Regex::full_match(std::string_view text) const {
  return RE2::FullMatch({text.data(), text.size()}, program_->expression);
}

}  // namespace graft
