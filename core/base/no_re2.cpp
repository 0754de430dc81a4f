#include "core/base/error.h"
#include "core/base/regex.h"

namespace graft {

struct Regex::Program {};

Regex::Regex(std::string_view pattern) {
  fail(ErrorKind::unsupported, "'", pattern,
       "' needs RE2, which this build lacks: install it and build with -DGRAFT_WITH_RE2=ON");
}

bool Regex::full_match(std::string_view) const {
  return false;  // no Regex can be made
}

}  // namespace graft
