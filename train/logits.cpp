#include "train/logits.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "core/ops/builder.h"

namespace graft {
namespace {

/// Whether each element of the output is one of the input.
bool moves(const Node& node) {
  static constexpr std::array<std::string_view, 6> kMovers{"Reshape",   "Flatten",   "Squeeze",
                                                           "Unsqueeze", "Transpose", "Identity"};
  return node.domain().empty() && std::ranges::find(kMovers, node.op_type()) != kMovers.end();
}

/// The end of a graph: what makes the scores, and what moves them, the last first.
struct End {
  const Node* maker = nullptr;
  std::vector<const Node*> movers;
};

End end_of(const Value& prediction) {
  End end{prediction.producer(), {}};
  while (end.maker != nullptr && moves(*end.maker)) {
    end.movers.push_back(end.maker);
    end.maker = end.maker->input(0)->producer();
  }
  return end;
}

/// Where a Transpose puts an axis.
int transposed(const Node& transpose, int axis) {
  const int rank = transpose.output()->known_shape().rank();
  const std::vector<std::int64_t> perm = transpose.attributes.get_ints("perm");
  if (perm.empty()) return rank - 1 - axis;
  return static_cast<int>(std::ranges::find(perm, axis) - perm.begin());
}

/// Where an axis is behind a node that keeps the elements' order; nullopt where it is no axis.
std::optional<int> reshaped(const Shape& from, int axis, const Shape& to) {
  for (int other = 0; other < to.rank(); ++other) {
    if (to[other] == from[axis] && to.size(0, other) == from.size(0, axis)) return other;
  }
  return std::nullopt;
}

/// Where the prediction has the axis along which Softmax sums to 1.
std::optional<int> axis_of_softmax(const End& end) {
  const Shape shape = end.maker->output()->known_shape();
  const auto given = static_cast<int>(end.maker->attributes.get_int("axis", -1));
  std::optional<int> axis = given < 0 ? given + shape.rank() : given;
  for (auto mover = end.movers.rbegin(); axis && mover != end.movers.rend(); ++mover) {
    axis = (*mover)->is("Transpose") ? transposed(**mover, *axis)
                                     : reshaped((*mover)->input(0)->known_shape(), *axis,
                                                (*mover)->output()->known_shape());
  }
  return axis;
}

bool judges_logits(const Loss& loss) {
  return loss.name == "cross_entropy" || loss.name == "token_cross_entropy";
}

/// Each of which says yes or no for itself.
bool judges_single_logits(const Loss& loss) {
  return loss.name == "bce_with_logits" || loss.name == "focal" || loss.name == "dice";
}

bool judges_log_probabilities(const Loss& loss) {
  return loss.name == "nll" || loss.name == "ctc";
}

bool makes_probabilities(const Loss& loss, const Value& prediction, const End& end) {
  if (end.maker == nullptr || loss.formula || loss.joint) return false;
  if (end.maker->is("Sigmoid")) return judges_single_logits(loss) || judges_logits(loss);
  const bool sees_softmax =
      judges_logits(loss) || judges_log_probabilities(loss) || loss.name == "kl";
  if (!end.maker->is("Softmax") || !sees_softmax) return false;
  return axis_of_softmax(end) == class_axis(loss, prediction.known_shape());
}

}  // namespace

const Node* maker_of(const Value& value) {
  return end_of(value).maker;
}

const Node* probabilities_of(const Loss& loss, const Value& prediction) {
  const End end = end_of(prediction);
  return makes_probabilities(loss, prediction, end) ? end.maker : nullptr;
}

Value* scores_of(const Loss& loss, Value* prediction) {
  const End end = end_of(*prediction);
  if (!makes_probabilities(loss, *prediction, end)) return prediction;
  Builder builder(prediction->graph(), nullptr, "loss/");
  Value* scores = end.maker->input(0);
  if (judges_log_probabilities(loss)) {
    scores = builder.node("LogSoftmax", "", {scores}, 1, end.maker->attributes)->output();
  }
  for (auto mover = end.movers.rbegin(); mover != end.movers.rend(); ++mover) {
    std::vector<Value*> inputs = (*mover)->copy_inputs();
    inputs[0] = scores;
    scores = builder.node((*mover)->op_type(), "", inputs, 1, (*mover)->attributes)->output();
  }
  return scores;
}

}  // namespace graft
