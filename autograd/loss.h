#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/expr.h"
#include "core/tensor/tensor.h"

namespace graft {

/// How far a prediction is from its target: a scalar, the mean over all elements (class losses:
/// over all predictions), as PyTorch's losses of these names with reduction "mean".
struct Loss {
  /// One of `loss_names()`.
  std::string name;
  /// Of cross_entropy: the share of the target that is spread over all classes, in [0, 1).
  float label_smoothing = 0.0F;
  /// Of huber: where the parabola becomes a line.
  float delta = 1.0F;
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

/// All names, in the order of the documentation.
std::vector<std::string> loss_names();
/// Throws Error{argument} for an unknown name; the message lists the valid ones.
Loss loss_from_name(std::string_view name);

/// Whether targets are class indices.
bool has_class_targets(const Loss& loss);
/// The axis of `prediction` that runs over classes. Only for losses with class targets.
int class_axis(const Loss& loss, const Shape& prediction);

/// Adds the loss to the graph and returns the scalar.
/// Throws Error{shape} or Error{type} naming both sides if target and prediction do not fit.
Expr add_loss(const Loss& loss, const Expr& prediction, const Expr& target);

/// Throws Error{argument} naming the first class index that is outside [0, classes).
void check_class_targets(const Tensor& target, std::int64_t classes);

}  // namespace graft
