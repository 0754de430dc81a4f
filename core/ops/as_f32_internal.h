#pragma once

#include "core/ops/kernel.h"

namespace graft {

/// The node computed in f32: its f16 and bf16 inputs are converted, the f32 kernel runs, its
/// results are rounded once. So every op that computes in f32 takes the short types too, with
/// sums in f32. Empty unless the node has a short type and an f32 kernel. Works in place, since
/// nothing is written before everything is read.
PreparedKernel prepare_as_f32(const Node& node, Device& device);

/// The same for runs of elements of an element-wise op, by blocks that stay in the nearest cache.
RunFunction run_as_f32(const Node& node, Device& device);

}  // namespace graft
