#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/model.h"
#include "core/layers/layer.h"

namespace graft::edit {

struct AppendOptions {
  /// The value to go on from, or the node whose first output it is; may be empty if the graph has
  /// one output only.
  std::string after{};
  /// Draws the weights of layers that have no seed of their own.
  std::uint64_t seed = 0;
  /// How weights start of layers that do not say it.
  std::optional<Init> init{};
};

/// Adds layers behind a value, in the forms of the model's own opset. Where that is a graph output,
/// the last layer's output takes its place among the outputs, under that layer's name; behind any
/// other value it becomes one more output. What the layers must know of the value's type, if the
/// model does not record it, is inferred on a copy and recorded.
///
/// Throws Error{argument}, with names, if `after` is no value, or empty where there are several
/// outputs, and if there is no layer; what `add_layer` throws; Error{unsupported} if the type of
/// the value must be inferred through an op that Graft does not know. A call that throws leaves the
/// nodes and values as they were.
void append(Model& model, const std::vector<Layer>& layers, const AppendOptions& options = {});

struct InsertOptions {
  /// One of these: the value behind which, or the node (or what it computes) before which.
  std::string after{};
  std::string before{};
  std::uint64_t seed = 0;
  std::optional<Init> init{};
};

/// Puts layers between a value and all that reads it, bodies and graph outputs included (`after`);
/// or between a node and the first of its inputs that is not known before the run (`before`): other
/// readers of that go on as they are. Types behind it are inferred anew. Throws as `append` does,
/// Error{argument} unless one place is said, and Error{shape}, naming the node, if what follows
/// does not take what the layers give. A call that throws leaves the model as it was.
void insert(Model& model, const std::vector<Layer>& layers, const InsertOptions& options);

}  // namespace graft::edit
