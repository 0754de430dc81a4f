#include "autograd/loss.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "autograd/joint_loss.h"
#include "autograd/loss_settings.h"
#include "core/base/at.h"
#include "core/ops/builder.h"

namespace graft {
namespace {

Expr mean(const Expr& x) {
  return reduce_mean(x, {}, false);
}

Expr reduced(const Loss& loss, const Expr& x) {
  return loss.reduction == Reduction::mean ? mean(x) : reduce_sum(x, {}, false);
}

/// What losses with class targets share.
Attributes class_attributes(const Loss& loss) {
  Attributes attributes{{"reduction", loss.reduction == Reduction::mean ? "mean" : "sum"}};
  if (loss.ignore_index) attributes.set({"ignore_index", *loss.ignore_index});
  return attributes;
}

std::vector<Expr> class_inputs(const Loss& loss, const Expr& scores, const Expr& target) {
  if (loss.class_weights.empty()) return {scores, target};
  const auto count = static_cast<std::int64_t>(loss.class_weights.size());
  const std::int64_t classes = scores.shape()[1];
  if (count != classes) {
    fail(ErrorKind::argument, loss.name, ": ", count, " class weights for ", classes, " classes");
  }
  Builder& builder = scores.builder();
  Value* const weights = builder.constant(Tensor::from(Shape{count}, loss.class_weights));
  return {scores, target, cast(builder.expr(weights), scores.dtype())};
}

Expr build_cross_entropy(const Loss& loss, const Expr& logits, const Expr& target) {
  Attributes attributes = class_attributes(loss);
  attributes.set({"label_smoothing", loss.label_smoothing});
  return call_internal("CrossEntropy", class_inputs(loss, logits, target), std::move(attributes));
}

Expr build_token_cross_entropy(const Loss& loss, const Expr& logits, const Expr& target) {
  const Shape shape = logits.shape();
  const std::int64_t tokens = shape[0] * shape[1];
  return build_cross_entropy(loss, reshape(logits, {tokens, shape[2]}), reshape(target, {tokens}));
}

Expr build_nll(const Loss& loss, const Expr& log_probabilities, const Expr& target) {
  return call("NegativeLogLikelihoodLoss", class_inputs(loss, log_probabilities, target),
              class_attributes(loss));
}

Expr build_mse(const Loss& loss, const Expr& prediction, const Expr& target) {
  const Expr difference = prediction - target;
  return reduced(loss, difference * difference);
}

Expr build_l1(const Loss& loss, const Expr& prediction, const Expr& target) {
  return reduced(loss, call("Abs", {prediction - target}));
}

/// d^2/2 up to delta, delta*(|d| - delta/2) beyond.
Expr build_huber(const Loss& loss, const Expr& prediction, const Expr& target) {
  const Expr difference = prediction - target;
  const Expr distance = call("Abs", {difference});
  const double delta = loss.delta;
  return reduced(loss, where(less(distance, constant_like(distance, delta)),
                             difference * difference * 0.5, (distance - 0.5 * delta) * delta));
}

/// -t*log(sigmoid(x)) - (1-t)*log(1-sigmoid(x)) = softplus(x) - t*x, which never overflows.
Expr binary_cross_entropy(const Expr& logits, const Expr& target) {
  return call("Softplus", {logits}) - logits * target;
}

/// With w for positive targets, w-1 times -t*log(sigmoid(x)) = t*(softplus(x) - x) come on top.
Expr build_bce_with_logits(const Loss& loss, const Expr& logits, const Expr& target) {
  const Expr plain = binary_cross_entropy(logits, target);
  if (loss.pos_weight.empty()) return reduced(loss, plain);
  const auto count = static_cast<std::int64_t>(loss.pos_weight.size());
  const std::int64_t last = logits.rank() == 0 ? 1 : logits.shape()[logits.rank() - 1];
  if (count != 1 && count != last) {
    fail(ErrorKind::argument, loss.name, ": ", count, " weights of positives, wanted 1 or ", last);
  }
  Builder& builder = logits.builder();
  Value* const weights = builder.constant(Tensor::from(Shape{count}, loss.pos_weight));
  const Expr extra = cast(builder.expr(weights), logits.dtype()) - 1.0;
  return reduced(loss, plain + extra * target * (call("Softplus", {logits}) - logits));
}

/// alpha_t (1 - p_t)^gamma bce, where p_t is the probability of what the target says.
Expr build_focal(const Loss& loss, const Expr& logits, const Expr& target) {
  const Expr p = sigmoid(logits);
  const Expr missed = p + target - p * target * 2.0;  // 1 - p_t
  const double alpha = loss.alpha;
  const Expr weight = target * (2.0 * alpha - 1.0) + (1.0 - alpha);
  const Expr bce = binary_cross_entropy(logits, target);
  return reduced(loss, weight * pow(missed, loss.gamma) * bce);
}

Expr build_dice(const Loss& /*loss*/, const Expr& logits, const Expr& target) {
  const Shape shape = logits.shape();
  const std::int64_t samples = shape.rank() == 0 ? 1 : shape[0];
  const Shape rows{samples, samples == 0 ? 0 : shape.size() / samples};
  const Expr p = reshape(sigmoid(logits), rows);
  const Expr t = reshape(target, rows);
  const auto sum = [](const Expr& x) { return reduce_sum(x, {1}, false); };
  return mean(1.0 - (sum(p * t) * 2.0 + 1.0) / (sum(p) + sum(t) + 1.0));
}

Expr build_kl(const Loss& loss, const Expr& logits, const Expr& teacher) {
  const double temperature = loss.temperature;
  const auto log_softmax = [&](const Expr& x) {
    return call("LogSoftmax", {x / temperature}, {{"axis", -1}});
  };
  const Expr wanted = log_softmax(teacher);
  const Expr rows = reduce_sum(exp(wanted) * (wanted - log_softmax(logits)), {-1}, false);
  return reduced(loss, rows) * (temperature * temperature);
}

Expr build_ctc(const Loss& loss, const Expr& log_probabilities, const Expr& target) {
  return call_internal(
      "CtcLoss", {log_probabilities, target},
      {{"blank", loss.blank}, {"zero_infinity", static_cast<int>(loss.zero_infinity)}});
}

/// cos(angle + margin) of cos(angle). Where that would grow again, a line that lies below it.
Expr with_margin(const Expr& cosine, double margin) {
  constexpr double kLeast = 1e-12;  // the slope of a root is infinite at 0
  const Expr square = 1.0 - cosine * cosine;
  const Expr sine = sqrt(call("Max", {square, constant_like(square, kLeast)}));
  const Expr turned = cosine * std::cos(margin) - sine * std::sin(margin);
  const Expr falls = greater(cosine, constant_like(cosine, -std::cos(margin)));
  return where(falls, turned, cosine - margin * std::sin(margin));
}

Expr build_arcface(const Loss& loss, const Expr& cosines, const Expr& target) {
  const auto number = [&](double value) { return constant_like(cosines, value); };
  const Expr depth = constant_ints(cosines.builder(), {cosines.shape()[1]});
  const Expr zero_one =
      call("Concat", {unsqueeze(number(0.0), {0}), unsqueeze(number(1.0), {0})}, {{"axis", 0}});
  const Expr is_right =
      greater(call("OneHot", {target, depth, zero_one}, {{"axis", 1}}), number(0.5));
  const Expr turned = where(is_right, with_margin(cosines, loss.margin), cosines);
  return build_cross_entropy(loss, turned * loss.scale, target);
}

Expr build_triplet(const Loss& loss, const Expr& embeddings, const Expr& labels) {
  if (embeddings.rank() != 2 || labels.shape() != Shape{embeddings.shape()[0]} ||
      labels.dtype() != DType::i64) {
    fail(ErrorKind::shape, loss.name, ": the prediction is ", embeddings.value()->type(),
         ", the target ", labels.value()->type(), ", wanted embeddings [N,D] and labels i64[N]");
  }
  constexpr double kEpsilon = 1e-6;  // PyTorch's, within each difference
  constexpr double kFar = 1e4;       // in f16 too
  const Expr difference = unsqueeze(embeddings, {1}) - unsqueeze(embeddings, {0}) + kEpsilon;
  const Expr distance = sqrt(reduce_sum(difference * difference, {2}, false));  // [N,N]
  const auto number = [&](double value) { return constant_like(distance, value); };
  const Expr alike = cast(equal(unsqueeze(labels, {1}), unsqueeze(labels, {0})), distance.dtype());
  const Expr itself = call("EyeLike", {distance});
  const auto extreme = [&](std::string_view op, const Expr& counts, double otherwise) {
    const Expr chosen = where(greater(counts, number(0.5)), distance, number(otherwise));
    return call(op, {chosen, constant_ints(labels.builder(), {1})}, {{"keepdims", 0}});
  };
  const Expr farthest = extreme("ReduceMax", alike - itself, -kFar);
  const Expr nearest = extreme("ReduceMin", 1.0 - alike, kFar);
  const Expr has_both = cast(greater(farthest, number(-kFar)), distance.dtype()) *
                        cast(less(nearest, number(kFar)), distance.dtype());
  const Expr sum =
      reduce_sum(call("Relu", {farthest - nearest + double{loss.margin}}) * has_both, {}, false);
  if (loss.reduction == Reduction::sum) return sum;
  return sum / call("Max", {reduce_sum(has_both, {}, false), number(1.0)});
}

struct Row {
  std::string_view name;
  Targets targets;
  Expr (*build)(const Loss& loss, const Expr& prediction, const Expr& target);
  float margin = 0.0F;
};

constexpr Row kRows[] = {
    {"cross_entropy", Targets::classes, build_cross_entropy},
    {"token_cross_entropy", Targets::classes_last, build_token_cross_entropy},
    {"nll", Targets::classes, build_nll},
    {"mse", Targets::numbers, build_mse},
    {"l1", Targets::numbers, build_l1},
    {"huber", Targets::numbers, build_huber},
    {"bce_with_logits", Targets::numbers, build_bce_with_logits},
    {"focal", Targets::numbers, build_focal},
    {"dice", Targets::numbers, build_dice},
    {"kl", Targets::numbers, build_kl},
    {"arcface", Targets::classes, build_arcface, 0.5F},
    {"triplet", Targets::any, build_triplet, 1.0F},
    {"ctc", Targets::sequences, build_ctc},
};

const Row& row_of(std::string_view name) {
  const auto* const at = std::ranges::find(kRows, name, &Row::name);
  if (at == std::end(kRows)) {
    std::string valid;
    for (const Row& row : kRows) valid += (valid.empty() ? "" : ", ") + std::string(row.name);
    fail(ErrorKind::argument, "unknown loss '", name, "'; valid: ", valid);
  }
  return *at;
}

/// Of the first part, where there are several.
Targets targets_of(const Loss& loss) {
  if (!loss.parts.empty()) return targets_of(loss.parts.front());
  if (loss.joint || is_in_graph(loss)) return Targets::any;
  return loss.formula ? loss.targets : row_of(loss.name).targets;
}

bool are_classes(Targets targets) {
  return targets != Targets::any && targets != Targets::numbers;
}

/// Throws Error{shape} unless the prediction has the axes that the loss speaks of.
void check_prediction(const Loss& loss, const Shape& prediction) {
  const auto refuse = [&](std::string_view wanted) {
    fail(ErrorKind::shape, loss.name, ": the prediction has shape ", prediction, ", wanted ",
         wanted);
  };
  const Targets targets = targets_of(loss);
  if (targets == Targets::classes && prediction.rank() < 2) refuse("[N,C,...]");
  if (targets == Targets::classes_last && prediction.rank() != 3) refuse("[B,T,C]");
  if (targets == Targets::sequences && prediction.rank() != 3) refuse("[T,B,C]");
}

/// The shape of the targets that fit a prediction; sequences may have any length.
Shape target_shape(const Loss& loss, const Shape& prediction, const Shape& given) {
  check_prediction(loss, prediction);
  const Targets targets = targets_of(loss);
  if (targets == Targets::numbers) return prediction;
  if (targets == Targets::sequences) return {prediction[1], given.rank() == 2 ? given[1] : 1};
  std::vector<std::int64_t> dims = prediction.dims();
  dims.erase(dims.begin() + (targets == Targets::classes_last ? 2 : 1));
  return Shape(std::move(dims));
}

/// The target in the form that the loss takes.
Expr fitting_target(const Loss& loss, const Expr& prediction, const Expr& target) {
  const Targets targets = targets_of(loss);
  if (targets == Targets::any) return target;
  const Shape wanted = target_shape(loss, prediction.shape(), target.shape());
  // A target [N] fits a prediction [N,1]: what matters is one target a prediction.
  if (target.shape().size() != wanted.size() ||
      (are_classes(targets) && target.shape() != wanted)) {
    fail(ErrorKind::shape, loss.name, ": the prediction is ", prediction.value()->type(),
         ", the target ", target.value()->type(), ", wanted a target of shape ", wanted);
  }
  const bool is_index = target.dtype() == DType::i64;
  if (are_classes(targets) != is_index) {
    fail(ErrorKind::type, loss.name, ": the target is ", target.value()->type(), ", wanted ",
         are_classes(targets) ? "class indices (i64)" : "floats");
  }
  return are_classes(targets) ? target : cast(reshape(target, wanted), prediction.dtype());
}

/// Settings as loss_from_spec takes them.
void check_settings(const Loss& loss) {
  check_has_settings(loss);
  const auto want = [&](std::string_view setting, float number, const SettingRange& range) {
    if (range.holds(number)) return;
    fail(ErrorKind::argument, "loss ", loss.name, ": ", setting, " is ", number, ", wanted ",
         range.wanted);
  };
  want("label_smoothing", loss.label_smoothing, kBelowOne);
  want("alpha", loss.alpha, kToOne);
  want("gamma", loss.gamma, kFromZero);
  want("temperature", loss.temperature, kAboveZero);
  want("delta", loss.delta, kAboveZero);
  want("scale", loss.scale, kAboveZero);
  want("margin", loss.margin, loss.name == "arcface" ? kAngle : kFromZero);
  for (const float weight : loss.class_weights) want("a class weight", weight, kFromZero);
  for (const float weight : loss.pos_weight) want("pos_weight", weight, kFromZero);
}

}  // namespace

Expr checked_scalar(const Loss& loss, const Expr& result, const Expr& prediction) {
  if (!result) fail(ErrorKind::argument, loss.name, ": the formula gives nothing, wanted a scalar");
  if (result.rank() != 0 || result.dtype() != prediction.dtype()) {
    fail(result.rank() != 0 ? ErrorKind::shape : ErrorKind::type, loss.name, ": the formula gives ",
         result.value()->type(), ", wanted ", prediction.dtype(),
         "[]: take a mean or a sum of it (reduce_mean, reduce_sum)");
  }
  return result;
}

std::vector<std::string> loss_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

Loss loss_from_name(std::string_view name) {
  const Row& row = row_of(name);
  return {.name = std::string(row.name), .margin = row.margin};
}

bool has_class_targets(const Loss& loss) {
  const Targets targets = targets_of(loss);
  return targets == Targets::classes || targets == Targets::classes_last;
}

bool has_sequence_targets(const Loss& loss) {
  return targets_of(loss) == Targets::sequences;
}

int class_axis(const Loss& loss, const Shape& prediction) {
  return targets_of(loss) == Targets::classes ? 1 : prediction.rank() - 1;
}

std::int64_t class_count(const Loss& loss, const Shape& prediction) {
  if (!are_classes(targets_of(loss))) return 0;
  check_prediction(loss, prediction);
  return prediction[class_axis(loss, prediction)];
}

Expr add_loss(const Loss& loss, const Expr& prediction, const Expr& target) {
  check_settings(loss);
  const Expr fitting = fitting_target(loss, prediction, target);
  return loss.formula ? checked_scalar(loss, loss.formula(prediction, fitting), prediction)
                      : row_of(loss.name).build(loss, prediction, fitting);
}

void check_class_targets(const Loss& loss, const Tensor& target, std::int64_t classes) {
  const Targets kind = targets_of(loss);
  if (!are_classes(kind)) return;
  if (target.defined() && &target.device() != &cpu()) {
    return check_class_targets(loss, target.to(cpu()), classes);
  }
  const auto labels = target.values<const std::int64_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const bool ends_sequence = kind == Targets::sequences && labels[i] < 0;
    if (ends_sequence || labels[i] == loss.ignore_index || (labels[i] >= 0 && labels[i] < classes))
      continue;
    fail(ErrorKind::argument, "class index ", labels[i], " at position ", i,
         " of the targets is outside [0, ", classes, ")");
  }
}

std::int64_t count_judged(const Loss& loss, const Tensor& target) {
  const std::optional<std::int64_t>& ignored = part_of(loss, 0).ignore_index;
  if (!ignored) return target.size();
  if (!target.defined()) fail(ErrorKind::argument, "loss ", loss.name, ": there is no target");
  if (&target.device() != &cpu()) return count_judged(loss, target.to(cpu()));
  const auto labels = target.values<const std::int64_t>();
  return target.size() - std::ranges::count(labels, *ignored);
}

double mean_weight(const Loss& loss, const Tensor& target, std::int64_t samples) {
  const bool is_one = loss.parts.empty() && !loss.joint;
  if (!is_one || !has_class_targets(loss) || loss.reduction == Reduction::sum) {
    return static_cast<double>(samples);
  }
  if (loss.class_weights.empty()) return static_cast<double>(count_judged(loss, target));
  const Tensor host = target.to(cpu());
  double weight = 0.0;
  for (const std::int64_t label : host.values<const std::int64_t>()) {
    if (label < 0 || label == loss.ignore_index) continue;
    if (std::cmp_greater_equal(label, loss.class_weights.size())) {
      fail(ErrorKind::argument, "loss ", loss.name, ": ", loss.class_weights.size(),
           " class weights, but the targets hold class ", label);
    }
    weight += static_cast<double>(at(loss.class_weights, label));
  }
  return weight;
}

}  // namespace graft
