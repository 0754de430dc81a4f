#pragma once

#include <string>
#include <vector>

#include "core/graph/model.h"

namespace graft {

/// Which initializers train.
struct TrainableRequest {
  /// Regular expression (RE2's syntax) that a parameter's whole name must match; empty: any.
  std::string pattern;
  /// Those whose whole name matches this one stay frozen; empty: none.
  std::string freeze;
  /// Exactly these, whatever the patterns and the defaults say; empty: by pattern.
  std::vector<std::string> names;
  /// The user's graph, of which the graph is a working copy: what only the copy has (constants of
  /// inlined functions) does not train, since it could not be saved. Null: all may train.
  const Graph* file = nullptr;
};

/// Gives parameters that an exporter merged because they were equal initializers of their own
/// (edit::separate_initializers, onnx::separate_merged): trained, they part.
void separate_parameters(Graph& graph);
/// The same, and what comes from a weight that the model's file freezes is frozen there, too.
void separate_parameters(Model& model);

/// Gives `to` what `from`, a clone of it that was trained, perhaps with more nodes, holds under the
/// names of its initializers: clones share elements, but not the parameters that training separated
/// from what they were merged with. They are separated in `to` as well. Returns how many tensors
/// were taken.
std::size_t take_parameters(Model& to, const Model& from);

/// The float initializers that train by default. Their roles (Value::role) decide: parameters
/// train, buffers, statistics and constants do not. Where the role is open, those train that reach
/// an input which usually holds a weight (OpDef::weights), directly or through ops that only
/// rearrange elements; never masks, shapes, epsilons and scalar factors, nor, of what an exporter
/// made, the scale of attention and the ones and zeros of a normalization without parameters.
/// Buffers that nothing marks must be frozen by name. `graph` is in the newest form
/// (upgrade_opset). `file` as in TrainableRequest.
std::vector<Value*> default_trainable(const Graph& graph, const Graph* file = nullptr);

/// Why a float initializer does not train by default, for users; empty where it does.
std::string why_frozen(const Value& value);

/// The scales of ones of BatchNormalizations that have no parameters: they do not train, but show
/// what trains nevertheless. `graph` and `file` as above.
std::vector<Value*> scales_without_parameters(const Graph& graph, const Graph* file = nullptr);

/// Running mean and variance of each BatchNormalization whose scale or bias is a variable, in
/// bodies too: those that training changes.
std::vector<Value*> running_statistics(const Graph& graph);

/// What the request selects, in the order of the graph's initializers.
/// Throws Error{argument} if a pattern is malformed or matches no parameter (naming some that are
/// there), or if a name is no float initializer; Error{unsupported} as Regex does.
std::vector<Value*> choose_trainable(const Graph& graph, const TrainableRequest& request);

/// A list of names for a message: the first few.
std::string some_of(const std::vector<std::string>& names);

}  // namespace graft
