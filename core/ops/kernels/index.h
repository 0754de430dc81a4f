#pragma once

#include <cstdint>

#include "core/ops/kernel.h"

namespace graft {

/// A position along a dim of `dim` >= 1: negative ones count from the end; those out of range are
/// clamped, because a running kernel cannot refuse them.
constexpr std::int64_t clamp_index(std::int64_t index, std::int64_t dim) {
  const std::int64_t from_start = index < 0 ? index + dim : index;
  return from_start < 0 ? 0 : from_start < dim ? from_start : dim - 1;
}

/// Calls visitor.template operator()<Index>() with the C++ type of an index input.
template <class Visitor>
bool visit_index(const KernelRequest& request, int input, Visitor&& visitor) {
  return visit_dtype(TypeList<std::int64_t, std::int32_t>{}, request.dtype(input), visitor);
}

}  // namespace graft
