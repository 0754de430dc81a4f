#include "autograd/joint_loss.h"

#include <cmath>

#include "core/base/error.h"
#include "core/ops/expr.h"

namespace graft {
namespace {

Expr add_parts(const Loss& loss, const std::vector<Expr>& outputs,
               const std::vector<Expr>& targets) {
  if (targets.size() != 1 && targets.size() != loss.parts.size()) {
    fail(ErrorKind::argument, "the loss ", loss.name, " has ", loss.parts.size(),
         " parts, the batch ", targets.size(), " targets, wanted one for all, or one each");
  }
  if (loss.part_weights.size() != loss.parts.size() || outputs.size() != loss.parts.size()) {
    fail(ErrorKind::argument, "the loss ", loss.name, " has ", loss.parts.size(), " parts, ",
         loss.part_weights.size(), " weights of parts and ", outputs.size(),
         " outputs, wanted as many of each (sum_of)");
  }
  Expr sum;
  for (std::size_t i = 0; i < loss.parts.size(); ++i) {
    const Expr part = add_loss(loss.parts[i], outputs[i], targets[target_of(i, targets.size())]);
    const Expr weighted = part * static_cast<double>(loss.part_weights[i]);
    sum = sum ? sum + cast(weighted, sum.dtype()) : weighted;
  }
  return sum;
}

}  // namespace

Expr add_loss(const Loss& loss, const std::vector<Expr>& outputs,
              const std::vector<Expr>& targets) {
  if (outputs.empty()) {
    fail(ErrorKind::argument, "the loss ", loss.name, " judges an output, none is given");
  }
  if (loss.joint) return checked_scalar(loss, loss.joint(outputs, targets), outputs.front());
  if (!loss.parts.empty()) return add_parts(loss, outputs, targets);
  if (targets.size() != 1) {
    fail(ErrorKind::argument, "the loss ", loss.name, " takes one target, the batch has ",
         targets.size(), "; say which output each judges (sum_of, joint_loss)");
  }
  return add_loss(loss, outputs.front(), targets.front());
}

bool is_in_graph(const Loss& loss) {
  if (loss.name != "graph" || loss.formula || loss.joint) return false;
  if (loss.outputs.empty()) {
    fail(ErrorKind::argument, "the loss graph names no output, wanted that of the model which ",
         "holds the loss (graph_loss)");
  }
  return true;
}

const Loss& part_of(const Loss& loss, std::size_t output) {
  if (loss.parts.empty()) return loss;
  if (output >= loss.parts.size()) {
    fail(ErrorKind::argument, "the loss ", loss.name, " has ", loss.parts.size(),
         " parts, wanted one for each output that it judges");
  }
  return loss.parts[output];
}

Loss sum_of(const std::vector<LossTerm>& terms) {
  if (terms.empty()) fail(ErrorKind::argument, "a sum of losses needs at least one");
  Loss sum;
  for (const LossTerm& term : terms) {
    if (!term.loss.parts.empty() || term.loss.joint || is_in_graph(term.loss)) {
      fail(ErrorKind::argument, "the loss ", term.loss.name,
           " names its own outputs, so it cannot be a part of a sum");
    }
    if (!std::isfinite(term.weight)) {
      fail(ErrorKind::argument, "the loss ", term.loss.name, " of '", term.output,
           "' has the weight ", term.weight, ", wanted a finite number");
    }
    const std::string weight = term.weight == 1.0F ? "" : text(term.weight, "*");
    sum.name += text(sum.name.empty() ? "" : "+", term.output, "=", weight, term.loss.name);
    sum.outputs.push_back(term.output);
    sum.parts.push_back(term.loss);
    sum.part_weights.push_back(term.weight);
  }
  return sum;
}

void check_class_targets(const Loss& loss, std::span<const Tensor> targets,
                         const std::vector<std::int64_t>& classes) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const Loss& part = part_of(loss, i);
    if (!has_class_targets(part) && !has_sequence_targets(part)) continue;
    const std::size_t target = target_of(i, targets.size());
    if (target >= targets.size()) {
      fail(ErrorKind::argument, "the loss ", loss.name, " judges ", classes.size(),
           " outputs, the batch has ", targets.size(), " targets, wanted one for all, or one each");
    }
    check_class_targets(part, targets[target], classes[i]);
  }
}

}  // namespace graft
