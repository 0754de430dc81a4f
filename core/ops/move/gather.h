#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/move/scatter_reduction.h"

namespace graft {

template <class T>
T combine(Reduction reduction, T old, T update) {
  switch (reduction) {
    case Reduction::add:
      return static_cast<T>(wrapping(old) + wrapping(update));
    case Reduction::mul:
      return static_cast<T>(wrapping(old) * wrapping(update));
    case Reduction::max:
      return std::max(old, update);
    case Reduction::min:
      return std::min(old, update);
    default:
      return update;
  }
}

}  // namespace graft
