#pragma once

#include <string>

#include "core/tensor/datum.h"

namespace graft {

/// A tensor and what its file calls it; the name may be empty.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Data of any kind with their name.
struct NamedDatum {
  std::string name;
  Datum datum;
};

}  // namespace graft
