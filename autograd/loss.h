#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace graft {

class Expr;

/// What the targets of a loss are. Those that are class indices are checked before a step runs, and
/// give an accuracy.
enum class Targets {
  any,           ///< what the loss takes: it gets them as they are
  numbers,       ///< floats of the prediction's size, which become its type and shape
  classes,       ///< class indices i64, one a prediction: [N] or [N,d...] for [N,C] or [N,C,d...]
  classes_last,  ///< class indices i64 [B,T] for [B,T,C]
  sequences,     ///< sequences of class indices i64 [B,L] for [T,B,C]
};

/// A loss as a formula: adds the nodes that compute it, and returns a scalar of the prediction's
/// element type. All types and shapes are known.
using LossFormula = std::function<Expr(const Expr& prediction, const Expr& target)>;

/// A loss as a formula over several outputs, in the order of Loss::outputs, and all targets of the
/// batch. Returns a scalar of the first output's element type.
using JointFormula =
    std::function<Expr(const std::vector<Expr>& outputs, const std::vector<Expr>& targets)>;

/// What becomes of the losses of all elements, or of all predictions.
enum class Reduction { mean, sum };

/// How far a prediction is from its target: a scalar, the mean over all elements (class losses:
/// over all predictions; ctc: over the samples), as PyTorch's losses of these names with the same
/// settings. `loss_from_spec` reads one from text.
struct Loss {
  /// One of `loss_names()`.
  std::string name;
  /// The share of the target that cross_entropy spreads over all classes, in [0, 1).
  float label_smoothing = 0.0F;
  /// Targets of this class count for nothing, in losses with class targets; a batch without others
  /// has the loss NaN.
  std::optional<std::int64_t> ignore_index = {};
  /// One a class, of losses with class targets; the mean is then a weighted one.
  std::vector<float> class_weights = {};
  /// What positive targets of bce_with_logits count: one number, or one for each element of the
  /// last axis.
  std::vector<float> pos_weight = {};
  /// Of all but ctc and dice.
  Reduction reduction = Reduction::mean;
  /// focal's: the weight of positive targets (negative ones have 1 - alpha), and how little what is
  /// predicted well counts.
  float alpha = 0.25F;
  float gamma = 2.0F;
  /// By which kl divides both sides' logits; above 0.
  float temperature = 1.0F;
  /// The difference at which huber's parabola becomes a line; above 0.
  float delta = 1.0F;
  /// By how much triplet wants others farther away; the angle, in [0, pi), that arcface adds, and
  /// by what it multiplies cosines, above 0.
  float margin = 0.0F;
  float scale = 64.0F;
  /// The class that separates ctc's labels, and whether targets too long for their prediction
  /// count as 0 instead of infinity.
  std::int64_t blank = 0;
  bool zero_infinity = false;
  /// Of a loss of the program's own (custom_loss), whose name is free; empty for all others.
  LossFormula formula = {};
  Targets targets = Targets::any;
  /// The model's outputs that the loss judges, where it names them (joint_loss, sum_of); of
  /// graph_loss the one that holds the loss.
  std::vector<std::string> outputs = {};
  JointFormula joint = {};
  /// Of sum_of: what is added up, one an output, each times its weight.
  std::vector<Loss> parts = {};
  std::vector<float> part_weights = {};
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
/// Logits against 0 and 1: binary cross entropy, less of what is predicted well. Source: Lin et
/// al., arXiv 1708.02002, as torchvision.ops.sigmoid_focal_loss.
inline Loss focal(float alpha = 0.25F, float gamma = 2.0F) {
  return {.name = "focal", .alpha = alpha, .gamma = gamma};
}
/// Logits [N,...] against masks of 0 and 1: 1 - (2 sum(p t) + 1) / (sum(p) + sum(t) + 1) with
/// p = sigmoid(logits), the mean over samples. Source: Milletari et al., arXiv 1606.04797.
inline Loss dice() {
  return {.name = "dice"};
}
/// Logits [N,C] against a teacher's logits: T^2 KL(softmax(t/T) || softmax(x/T)), the mean over
/// samples. Source: Hinton et al., arXiv 1503.02531.
inline Loss kl(float temperature = 1.0F) {
  return {.name = "kl", .temperature = temperature};
}
/// Cosines [N,C] against class indices i64 [N]: cross entropy of scale * cos, where the angle of
/// the right class is `margin` larger; past pi - margin a line goes on. Layers: `cosine`. Source:
/// Deng et al., arXiv 1801.07698.
inline Loss arcface(float margin = 0.5F, float scale = 64.0F) {
  return {.name = "arcface", .margin = margin, .scale = scale};
}
/// Embeddings [N,D] against labels i64 [N] of any value: max(0, d(a,p) - d(a,n) + margin), the mean
/// over samples a with the farthest p of the same label and the nearest n of another one in the
/// batch; those without either count for nothing. d as torch.nn.TripletMarginLoss has it. Source:
/// Hermans et al., arXiv 1703.07737, "batch hard".
inline Loss triplet(float margin = 1.0F) {
  return {.name = "triplet", .margin = margin};
}

/// Log-probabilities [T,B,C] against label sequences i64 [B,L]; a sequence ends before its first
/// negative label. Each loss is divided by the length of its sequence.
inline Loss ctc(std::int64_t blank = 0, bool zero_infinity = false) {
  return {.name = "ctc", .blank = blank, .zero_infinity = zero_infinity};
}

/// A loss of the program's own. Mean relative error:
///
///     custom_loss("relative", [](const Expr& y, const Expr& t) {
///       return reduce_mean(call("Abs", {y - t}) / t, {}, false);
///     }, Targets::numbers)
///
/// The formula is called for each plan that is made, and must depend on its arguments only.
inline Loss custom_loss(std::string name, LossFormula formula, Targets targets = Targets::any) {
  return {.name = std::move(name), .formula = std::move(formula), .targets = targets};
}

/// The names that `loss_from_name` takes, in the order of the documentation.
std::vector<std::string> loss_names();
/// Throws Error{argument} for an unknown name; the message lists the valid ones.
Loss loss_from_name(std::string_view name);
/// NAME[:KEY=VALUE]..., with the settings that the loss has; lists are joined by ',':
///
///     cross_entropy:label_smoothing=0.1:ignore_index=255:weights=1,2.5,1
///     bce_with_logits:pos_weight=3
///
/// graph:OUTPUT is graph_loss, and OUTPUT=[WEIGHT*]NAME...[+OUTPUT=...] is sum_of:
///
///     scores=cross_entropy+boxes=0.5*huber:delta=2
///
/// Throws Error{argument}, listing what the loss takes, for anything else.
Loss loss_from_spec(std::string_view spec);
/// A line for each loss that `loss_from_spec` reads: "huber[:delta=NUMBER][:reduction=mean|sum]".
std::vector<std::string> loss_usages();

/// Whether targets are class indices, one a prediction: then there is an accuracy.
bool has_class_targets(const Loss& loss);
/// Whether targets are sequences of class indices.
bool has_sequence_targets(const Loss& loss);
/// The axis of `prediction` that runs over classes. Only for losses of these two kinds.
int class_axis(const Loss& loss, const Shape& prediction);
/// The number of classes that targets choose from; 0 for losses of other kinds.
std::int64_t class_count(const Loss& loss, const Shape& prediction);

/// Adds the loss to the graph; gives the scalar. Throws Error{argument} naming a setting that is
/// out of its range or that the loss lacks, Error{shape} or Error{type} naming both sides if target
/// and prediction do not fit or a formula gives another scalar; and what the formula throws.
Expr add_loss(const Loss& loss, const Expr& prediction, const Expr& target);
/// Throws Error{argument} naming the first class index that is outside [0, classes); those of
/// sequences may be negative. Losses whose targets are no classes are not checked.
void check_class_targets(const Loss& loss, const Tensor& target, std::int64_t classes);
/// How many of the targets count: all, but those of `ignore_index`. Throws Error{argument} if there
/// is an `ignore_index` and no target.
std::int64_t count_judged(const Loss& loss, const Tensor& target);
/// What the mean of a batch divides by, so that the means of several make that of all: the weights
/// of the classes of those that count, each 1 without `class_weights`; for losses without class
/// targets, for sums and for those of several parts the samples. Throws alike, and for a target
/// beyond the weights.
double mean_weight(const Loss& loss, const Tensor& target, std::int64_t samples);

}  // namespace graft
