#pragma once

#include <string>
#include <vector>

#include "autograd/joint_loss.h"
#include "core/graph/graph.h"

namespace graft {

/// The outputs of a model that its loss needs.
struct JudgedOutputs {
  /// Each once; the first is the prediction.
  std::vector<Value*> outputs;
  /// Which of these the loss judges, in its order; of graph_loss the one that holds the loss.
  std::vector<std::size_t> judged;
};

/// `output`: what the prediction is where the loss does not say it; empty: the first output, but
/// for that of graph_loss. Throws Error{argument} if there is no such output, if both say it, or if
/// no loss is called so.
JudgedOutputs choose_outputs(const Graph& graph, const Loss& loss, const std::string& output);

/// The inputs of a model with graph_loss that take the targets of a batch of `inputs` inputs and
/// `targets` targets: those that only the loss reads or, failing that, the last. None where the
/// model has an input for each of the batch's alone. Throws Error{argument} for any other number.
std::vector<Value*> inputs_for_targets(const Graph& graph, const Loss& loss,
                                       const std::string& output, std::size_t inputs,
                                       std::size_t targets);

/// Puts inputs behind all others.
void move_inputs_to_end(Graph& graph, const std::vector<Value*>& inputs);

}  // namespace graft
