#pragma once

#include <vector>

#include "core/graph/node.h"
#include "core/ops/kernel.h"
#include "core/tensor/tensor.h"

namespace graft {

/// Runs one prepared kernel of `node` on the CPU; `inputs` has one tensor an input (not defined
/// where left out). Returns new tensors, one an output. All types and shapes must be known.
std::vector<Tensor> evaluate(const PreparedKernel& kernel, const Node& node,
                             const std::vector<Tensor>& inputs, const RunState& state = {});

/// The same with the first kernel that takes the node; views (Reshape, ...) copy their input.
/// Throws Error{unsupported} if there is none.
std::vector<Tensor> evaluate(const Node& node, const std::vector<Tensor>& inputs,
                             const RunState& state = {});

}  // namespace graft
