#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/kernel.h"
#include "core/ops/kernels/elementwise.h"

namespace graft {

/// Writes of ScatterElements and ScatterND.
enum class Reduction { none, add, mul, max, min };

/// From the attribute `reduction`, which inference has checked.
Reduction reduction_of(const KernelRequest& request);

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
