#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/expr.h"
#include "core/tensor/tensor.h"

namespace graft {

/// How far a prediction is from its target: a scalar, the mean over all elements (class losses:
/// over all predictions; ctc: over the samples), as PyTorch's losses of these names with reduction
/// "mean".
struct Loss {
  /// One of `loss_names()`.
  std::string name;
  /// The share of the target that cross_entropy spreads over all classes, in [0, 1).
  float label_smoothing = 0.0F;
  /// The difference at which huber's parabola becomes a line; above 0.
  float delta = 1.0F;
  /// The class that separates ctc's labels, and whether targets too long for their prediction
  /// count as 0 instead of infinity.
  std::int64_t blank = 0;
  bool zero_infinity = false;
};

/// Logits [N,C] or [N,C,d...] against class indices i64 [N] or [N,d...].
inline Loss cross_entropy(float label_smoothing = 0.0F) {
  return {.name = "cross_entropy", .label_smoothing = label_smoothing};
}
/// Logits [B,T,C] against class indices i64 [B,T].
inline Loss token_cross_entropy() {
  return {.name = "token_cross_entropy"};
}
/// Log-probabilities [N,C] or [N,C,d...] against class indices.
inline Loss nll() {
  return {.name = "nll"};
}
/// The following compare element by element with a float target of the prediction's size.
inline Loss mse() {
  return {.name = "mse"};
}
inline Loss l1() {
  return {.name = "l1"};
}
inline Loss huber(float delta = 1.0F) {
  return {.name = "huber", .delta = delta};
}
/// Logits against probabilities.
inline Loss bce_with_logits() {
  return {.name = "bce_with_logits"};
}

/// Log-probabilities [T,B,C] against label sequences i64 [B,L]; a sequence ends before its first
/// negative label. Each loss is divided by the length of its sequence.
inline Loss ctc(std::int64_t blank = 0, bool zero_infinity = false) {
  return {.name = "ctc", .blank = blank, .zero_infinity = zero_infinity};
}

/// The names that `loss_from_name` takes, in the order of the documentation.
std::vector<std::string> loss_names();
/// Throws Error{argument} for an unknown name; the message lists the valid ones.
Loss loss_from_name(std::string_view name);

/// Whether targets are class indices, one a prediction: then there is an accuracy.
bool has_class_targets(const Loss& loss);
/// Whether targets are sequences of class indices.
bool has_sequence_targets(const Loss& loss);
/// The axis of `prediction` that runs over classes. Only for losses of these two kinds.
int class_axis(const Loss& loss, const Shape& prediction);
/// The number of classes that targets choose from; 0 for losses of other kinds.
std::int64_t class_count(const Loss& loss, const Shape& prediction);

/// Adds the loss to the graph and returns the scalar.
/// Throws Error{shape} or Error{type} naming both sides if target and prediction do not fit.
Expr add_loss(const Loss& loss, const Expr& prediction, const Expr& target);

/// Throws Error{argument} naming the first class index that is outside [0, classes); those of
/// sequences may be negative. Losses whose targets are no classes are not checked.
void check_class_targets(const Loss& loss, const Tensor& target, std::int64_t classes);

}  // namespace graft
