#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace graft::autograd {

/// Where differentiation starts: an output and the gradient that flows into it.
struct Seed {
  Value* output;
  /// A value of the output's type and shape; null stands for ones.
  Value* gradient = nullptr;
};

/// Adds nodes at the end of `graph` that compute the gradient of the seeded outputs (weighted by
/// their seeds, summed) with respect to each of `wanted`. Returns one value a wanted one; null
/// where nothing flows. All shapes must be known and no op may be left to decompose. Throws
/// Error{unsupported} that lists every node without a gradient between `wanted` and the outputs,
/// with its reason, before it adds anything. A rule may still refuse a special case (a reduction of
/// ScatterND, say) by the same error when it is reached.
std::vector<Value*> backward(Graph& graph, const std::vector<Seed>& seeds,
                             const std::vector<Value*>& wanted);

/// The nodes that stop `backward` for these arguments, as "node: reason"; empty when none does.
std::vector<std::string> blockers(const Graph& graph, const std::vector<const Value*>& outputs,
                                  const std::vector<const Value*>& wanted);

}  // namespace graft::autograd
