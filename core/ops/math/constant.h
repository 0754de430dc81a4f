#pragma once

#include <optional>

#include "core/graph/node.h"
#include "core/ops/kernel.h"
#include "core/tensor/tensor.h"

namespace graft {

/// The tensor of a Constant node, from whichever value_* attribute it has.
/// Throws Error{model} unless it has exactly one; Error{unsupported} for a sparse tensor.
Tensor constant_value(const Node& node);

/// The one element of ConstantOfShape's attribute `value`; f32 0 without it.
/// Throws Error{model} if it is not one element.
Tensor fill_value(const Node& node);

/// The dims that a Shape node takes: [first, last) of `rank`.
struct DimRange {
  int first;
  int last;
};
DimRange shape_range(const Node& node, int rank);

}  // namespace graft
