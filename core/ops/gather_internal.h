#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/elementwise_internal.h"
#include "core/ops/kernel.h"

namespace graft {

/// A position along a dim of `dim` >= 1: negative ones count from the end; those out of range are
/// clamped, because a running kernel cannot refuse them.
inline std::int64_t clamp_index(std::int64_t index, std::int64_t dim) {
  return std::clamp<std::int64_t>(index < 0 ? index + dim : index, 0, dim - 1);
}

/// Calls visitor.template operator()<Index>() with the C++ type of an index input.
template <class Visitor>
bool visit_index(const KernelRequest& request, int input, Visitor&& visitor) {
  return visit_dtype(TypeList<std::int64_t, std::int32_t>{}, request.dtype(input), visitor);
}

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
