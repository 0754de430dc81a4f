#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/move/scatter_reduction.h"

namespace graft {

template <class T>
T combine(ScatterReduction reduction, T old, T update) {
  switch (reduction) {
    case ScatterReduction::add:
      return static_cast<T>(wrapping(old) + wrapping(update));
    case ScatterReduction::mul:
      return static_cast<T>(wrapping(old) * wrapping(update));
    case ScatterReduction::max:
      return std::max(old, update);
    case ScatterReduction::min:
      return std::min(old, update);
    default:
      return update;
  }
}

}  // namespace graft
