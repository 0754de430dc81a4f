#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "core/ops/op_def.h"

namespace graft {

// What the rows of pools share.

/// Windows over the spatial axes of [N,C,...]; output 1, if there is one, holds indices of that
/// type.
void infer_with_indices(InferContext& context, DType indices);

/// Throws Error{shape} unless the input is as large as what pooling `x` gives.
void check_pool_gradient(const InferContext& context, const SymShape& x, int dy_index);

/// The attributes of windows, and those.
std::vector<AttributeDef> pool_attributes(std::initializer_list<AttributeDef> more);

/// One call: shapes of x and y, and attributes. Forward and gradient samples share them.
struct PoolCase {
  std::string name;
  Shape x;
  Shape y;
  Attributes attributes;
};

std::vector<PoolCase> pool_cases();

/// Values far enough apart that differences do not change which is the greatest.
SampleInput distinct_image(const Shape& shape);

}  // namespace graft
