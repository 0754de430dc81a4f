#include "tests/fuzz/target.h"

#include "core/base/error.h"

namespace graft::fuzz {
bool succeeds(const std::function<void()>& action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    require(!std::string_view(error.what()).empty(), "an error without a text");
    return false;
  }
}

bool succeeds_quietly(const std::function<void()>& action) {
  try {
    action();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void require(bool holds, const std::string& what) {
  if (!holds) throw Finding(what);
}

}  // namespace graft::fuzz
