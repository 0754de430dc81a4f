#pragma once

#include <cstdint>
#include <optional>

#include "core/layers/batch_probe.h"

// What exporters bake the batch into, node by node: each function looks at a node of the probe's
// `grown` before it is inferred, and changes it and the node of the user's model that it stands
// for.

namespace graft::edit {

struct BatchEdit {
  Graph& graph;  ///< the user's
  std::int64_t opset;
  std::optional<std::int64_t> batch;  ///< the new one; nullopt for any
  BatchProbe& probe;
};

/// Lets a Reshape put the batch where it was. False where its target is not known yet.
bool free_target(BatchEdit& edit, Node& node);
/// Frees a literal shape in input `index` that holds the batch as a dim of its own.
void free_shape(BatchEdit& edit, Node& node, int index);
/// Lets a Concat join what is the same for all samples with each of them.
void free_operands(BatchEdit& edit, Node& node);
/// Lets an Expand start from one row, where it was given one for each sample, all alike.
void free_repeated(BatchEdit& edit, Node& node);
/// Frees the initial states of a recurrent node.
void free_states(BatchEdit& edit, Node& node);

// What these share.

/// The node of the user's model that one of `grown` was made of; null where only `grown` has it: it
/// stood in a function, or is another op there.
Node* own_node(const BatchEdit& edit, const Node& node);
/// A constant of integers before a node of the user's model.
Value* add_ints(BatchEdit& edit, Node& before, const std::vector<std::int64_t>& values);
/// `dims` with the new batch at `axis`: a constant, or computed from the shape of an input.
Value* shape_with_batch(BatchEdit& edit, Node& before, std::vector<std::int64_t> dims, int axis);
/// A constant of integers in `grown`.
Value* grown_ints(BatchEdit& edit, const std::vector<std::int64_t>& values);

}  // namespace graft::edit
