#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.h"
#include "data/loader.h"

namespace graft {

/// What became of the layers that were meant.
struct UnfusedNorms {
  std::vector<std::string> layers;    ///< that have a BatchNormalization again
  std::vector<std::string> left_out;  ///< "Conv node 'x': why"
};

/// Puts a BatchNormalization behind Convs and Gemms into which an exporter folded theirs: what is
/// left trains worse, and at lower rates. Its statistics are those of what the layer gives for
/// `data`, its scale and bias undo them, so that answers stay the same but for rounding, and a step
/// starts where the model stands. The layer's bias, which it makes idle, goes.
///
/// `pattern` (RE2) must match the whole name of the layer, its weight or its node. Empty: all Convs
/// that have a bias and no BatchNormalization, but for those that make an output.
///
/// Throws Error{argument} if no such layer is found, what running the model on `data` throws, and
/// Error{numeric} if a layer's values there are not finite; the model is then as it was.
UnfusedNorms unfuse_norms(Model& model, std::string_view pattern, DataLoader& data);

}  // namespace graft
