#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/model.h"
#include "core/layers/layer.h"

namespace graft::edit {

struct AppendOptions {
  /// The graph output to go on from; may be empty if there is only one.
  std::string after{};
  /// Draws the weights of layers that have no seed of their own.
  std::uint64_t seed = 0;
};

/// Adds layers behind a graph output, in the forms of the model's own opset; the last layer's
/// output takes its place among the outputs, under that layer's name. What the layers must know of
/// the output's type, if the model does not record it, is inferred on a copy and recorded.
///
/// Throws Error{argument}, with the names of the outputs, if `after` is none of them or empty where
/// there are several, and if there is no layer; what `add_layer` throws; Error{unsupported} if the
/// type of the output must be inferred through an op that Graft does not know. A call that throws
/// leaves the nodes and values as they were.
void append(Model& model, const std::vector<Layer>& layers, const AppendOptions& options = {});

}  // namespace graft::edit
