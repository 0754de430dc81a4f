#pragma once

#include <string_view>
#include <vector>

#include "core/graph/model.h"

namespace graft::edit {

/// Makes a graph input a constant, and takes the branch of each If whose condition is known by
/// that: its nodes and weights move up into the graph, where weights can train. Throws
/// Error{argument} if there is no such input, Error{type} or Error{shape} if the tensor does not
/// fit it; the model is then as it was.
void fix_input(Model& model, std::string_view input, const Tensor& value);

/// The graph inputs by which the conditions of If nodes are computed whose branches hold floats of
/// more than one element: weights that cannot train before one branch is taken.
std::vector<const Value*> inputs_that_choose_weights(const Graph& graph);

}  // namespace graft::edit
