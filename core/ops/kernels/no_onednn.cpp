#include "core/ops/libraries.h"

namespace graft {

std::string onednn_description() {
  return {};
}

}  // namespace graft
