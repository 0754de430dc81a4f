#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/loss.h"

// Losses that name the outputs that they judge.
namespace graft {

/// A loss over several outputs and targets, of the program's own; docs/losses.md shows one. The
/// first output is what TrainStep::prediction gives.
inline Loss joint_loss(std::string name, std::vector<std::string> outputs, JointFormula formula) {
  return {.name = std::move(name), .outputs = std::move(outputs), .joint = std::move(formula)};
}

/// A loss that the model computes itself, in this output of one number. The inputs that only the
/// loss reads take the batch's targets.
inline Loss graph_loss(std::string output) {
  return {.name = "graph", .outputs = {std::move(output)}};
}

/// A loss of one output among several.
struct LossTerm {
  std::string output;
  Loss loss;
  float weight = 1.0F;
};
/// The weighted sum of losses. If the batch has one target, all judge by it; else each has its own,
/// in their order. The accuracy, if any, is the first one's.
Loss sum_of(const std::vector<LossTerm>& terms);

/// Whether the model computes the loss (graph_loss). Throws Error{argument} if such a loss does not
/// name its output.
bool is_in_graph(const Loss& loss);
/// The loss of the output with this index among those that are judged: the loss itself, or its
/// part. Throws Error{argument} if there are fewer parts.
const Loss& part_of(const Loss& loss, std::size_t output);
/// Which of `targets` targets goes with that output.
inline std::size_t target_of(std::size_t output, std::size_t targets) {
  return targets == 1 ? 0 : output;
}

/// As add_loss, of all outputs that the loss judges and all targets. Throws Error{argument} besides
/// if their numbers are not those that the loss takes.
Expr add_loss(const Loss& loss, const std::vector<Expr>& outputs, const std::vector<Expr>& targets);

/// What a formula of the program's own gave, if it is a scalar of the prediction's type. Throws
/// Error{argument}, {shape} or {type} otherwise.
Expr checked_scalar(const Loss& loss, const Expr& result, const Expr& prediction);

/// As check_class_targets, of all targets. `classes`: `class_count` of each output that the loss
/// judges. Throws Error{argument} besides if there is no target for one that is judged by classes.
void check_class_targets(const Loss& loss, std::span<const Tensor> targets,
                         const std::vector<std::int64_t>& classes);

}  // namespace graft
