#pragma once

#include "core/ops/infer.h"

namespace graft {

/// Of MaxPool, AveragePool and LpPool: windows over the spatial axes of [N,C,...]; output 1, if
/// there is one, holds indices.
void infer_pool(InferContext& context);

/// Of the global pools: the spatial axes become 1.
void infer_global_pool(InferContext& context);

}  // namespace graft
