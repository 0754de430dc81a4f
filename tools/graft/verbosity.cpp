#include "tools/graft/verbosity.h"

namespace graft::cli {

Verbosity& verbosity() {
  static Verbosity chosen;
  return chosen;
}

}  // namespace graft::cli
