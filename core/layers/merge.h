#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/model.h"

namespace graft::edit {

/// Puts a text before the names of all values and of all nodes that have a name, in bodies too.
/// Throws Error{argument} if it is empty.
void add_prefix(Model& model, std::string_view prefix);

struct MergeOptions {
  /// Outputs of the model, and the inputs of `next` that read them. Empty: those of equal names or,
  /// if there are none, the only output and the only input.
  std::vector<std::pair<std::string, std::string>> connect{};
  /// Put before the names of `next` (`add_prefix`); `connect` holds its own names.
  std::string prefix{};
};

/// Puts another model behind this one. Outputs that are read are outputs no longer; those of `next`
/// follow the others. Inputs of `next` that are not connected become inputs. Where the models'
/// opsets differ, the older one's nodes are first brought to the newer (`change_opset`). Named dims
/// of connected inputs become what the outputs have there. Metadata of `next` is added under keys
/// that the model does not have; functions come along. Tensors are shared with `next`.
///
/// Throws Error{argument}, with the names, if an output or input is unknown or connected twice, or
/// if nothing is said and the choice is open; Error{model} if names clash and there is no prefix,
/// or if both define a function; Error{type} or Error{shape} if an output does not fit its input;
/// Error{unsupported} if opsets of other domains differ. A call that throws leaves the model as it
/// was.
void merge(Model& model, const Model& next, const MergeOptions& options = {});

}  // namespace graft::edit
