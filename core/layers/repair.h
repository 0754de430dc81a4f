#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.h"

// Puts back what exporters take from a model, and says how parts of it train. Patterns are regular
// expressions (RE2) that a whole name must match. A call that throws leaves the model as it was.
namespace graft::edit {

/// Puts a Dropout behind the nodes of that name, or of which an output has it: for training, whose
/// step alone draws; answers stay the same bits. `ratio`: the share that is dropped. Returns the
/// names of the values. Throws Error{argument} if the ratio is not in [0, 1) or no node matches.
std::vector<std::string> insert_dropout(Model& model, std::string_view pattern, float ratio);

/// What a BatchNormalization does in training.
enum class NormPolicy {
  train,   ///< normalizes by the batch, its statistics follow; scale and bias train
  fixed,   ///< normalizes by its statistics, which stay; scale and bias train
  frozen,  ///< stays as it is
};

/// "train", "fixed" or "frozen". Throws Error{argument} for others.
NormPolicy norm_policy(std::string_view name);

/// Gives BatchNormalizations that policy, in the file too (core/graph/frozen.h), by the name of the
/// node, of its scale, or of that without ".weight". Returns their names. Throws Error{argument} if
/// none matches.
std::vector<std::string> set_norms(Model& model, std::string_view pattern, NormPolicy policy);

/// Lets outputs that end in a Softmax or Sigmoid, perhaps moved by a Reshape or the like, give what
/// comes before it: logits, by which losses judge. An output that is the Softmax itself gets the
/// logits' name. Others keep theirs. Returns the labels of the nodes that went; none is no error.
std::vector<std::string> strip_probabilities(Model& model);

}  // namespace graft::edit
