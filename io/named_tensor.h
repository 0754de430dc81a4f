#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace graft {

/// A tensor and what its file calls it; the name may be empty.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace graft
