#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/train/loss_lowering.h"

namespace graft {
namespace {

std::string checked_reduction(const InferContext& context) {
  std::string reduction = context.attributes().get_string("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") {
    context.fail(ErrorKind::model, "reduction is '", reduction,
                 "', wanted 'mean', 'sum' or 'none'");
  }
  return reduction;
}

void check_smoothing(const InferContext& context) {
  const float smoothing = context.attributes().get_float("label_smoothing", 0.0F);
  if (!(smoothing >= 0.0F && smoothing <= 1.0F)) {
    context.fail(ErrorKind::argument, "label_smoothing is ", smoothing, ", wanted 0 to 1");
  }
}

void require_same_dim(const InferContext& context, const Dim& found, const Dim& wanted,
                      std::string_view what) {
  if (found.is_known() && wanted.is_known() && found.value() != wanted.value()) {
    context.fail(ErrorKind::shape, what, " is ", found, ", wanted ", wanted);
  }
}

/// scores [N,C,d...], labels [N,d...], weights [C], as inputs `first`, first + 1, first + 2.
void check_loss_inputs(const InferContext& context, int first) {
  const DType label_type = context.dtype(first + 1);
  if (label_type != DType::undefined && label_type != DType::i32 && label_type != DType::i64) {
    context.fail(ErrorKind::type, "labels are ", label_type, ", wanted i32 or i64");
  }
  context.require_same_dtype({first, first + 2});
  context.require_rank(first, 2, 1 << 20);
  context.require_rank(first + 2, 1, 1);
  const SymShape* const scores = context.shape(first);
  const SymShape* const labels = context.shape(first + 1);
  const SymShape* const weights = context.shape(first + 2);
  if (scores == nullptr) return;
  if ((*scores)[1].is_known() && (*scores)[1].value() == 0) {
    context.fail(ErrorKind::shape, "scores ", *scores, " have no classes");
  }
  if (weights != nullptr) {
    require_same_dim(context, (*weights)[0], (*scores)[1], "the number of weights");
  }
  if (labels == nullptr) return;
  if (labels->rank() != scores->rank() - 1) {
    context.fail(ErrorKind::shape, "labels ", *labels, " do not fit scores ", *scores,
                 ", wanted its shape without axis 1");
  }
  for (int axis = 0; axis < labels->rank(); ++axis) {
    require_same_dim(context, (*labels)[axis], (*scores)[axis == 0 ? 0 : axis + 1],
                     text("labels dim ", axis));
  }
}

void infer_loss(InferContext& context) {
  check_loss_inputs(context, 0);
  check_smoothing(context);
  const DType dtype = context.dtype(0);
  if (checked_reduction(context) != "none") {
    context.set_output(0, dtype, SymShape());
  } else if (const SymShape* const labels = context.shape(1)) {
    context.set_output(0, dtype, *labels);
  } else {
    context.set_output(0, dtype);
  }
  if (context.node().output(1) != nullptr) context.copy_type(0, 1);
}

void infer_loss_grad(InferContext& context) {
  check_loss_inputs(context, 1);
  check_smoothing(context);
  context.require_same_dtype({0, 1});
  const SymShape* const dloss = context.shape(0);
  const SymShape* const labels = context.shape(2);
  const bool is_scalar = checked_reduction(context) != "none";
  if (dloss != nullptr && (is_scalar || labels != nullptr)) {
    const int wanted = is_scalar ? 0 : labels->rank();
    context.require_rank(0, wanted, wanted);
    for (int axis = 0; axis < wanted; ++axis) {
      require_same_dim(context, (*dloss)[axis], (*labels)[axis], text("gradient dim ", axis));
    }
  }
  context.copy_type(1);
}

/// Gradient of the loss output; weights get none, as in PyTorch.
Expr loss_gradient(const Gradient& g, std::string_view op) {
  std::vector<Expr> inputs{g.dy(0), g.x(0), g.x(1)};
  if (g.node().input(2) != nullptr) inputs.push_back(g.x(2));
  return call_internal(op, inputs, g.attributes());
}

std::vector<Expr> cross_entropy_rule(const Gradient& g) {
  Expr dx;
  if (g.has_dy(0)) dx = loss_gradient(g, "CrossEntropyGrad");
  if (g.node().output(1) != nullptr && g.has_dy(1)) {
    const Expr through = call_internal("LogSoftmaxGrad", {g.y(1), g.dy(1)}, {{"axis", 1}});
    dx = dx ? dx + through : through;
  }
  return {dx};
}

std::vector<Expr> nll_rule(const Gradient& g) {
  return {loss_gradient(g, "NegativeLogLikelihoodLossGrad")};
}

SampleInput labels(Shape shape, std::vector<double> values, DType dtype = DType::i64) {
  return {.shape = std::move(shape), .values = std::move(values), .dtype = dtype};
}
/// Constant: they have no gradient.
SampleInput weights(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {.shape = {count}, .values = std::move(values), .is_constant = true};
}

std::vector<double> cycling_labels(std::int64_t count, std::int64_t classes) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(static_cast<double>(i * 7 % classes));
  return result;
}

std::vector<Sample> loss_samples() {
  const auto scores = [](Shape shape) {
    return SampleInput{.shape = std::move(shape), .low = -3.0, .high = 3.0};
  };
  const SampleInput four = labels({4}, {0, 2, 1, 2});
  const SampleInput seg = labels({2, 2, 3}, {0, 1, 2, 3, 0, 1, 3, 3, 1, 2, 0, 0});
  const SampleInput w3 = weights({0.5, 2.0, 1.25});
  const SampleInput w4 = weights({0.5, 2.0, 1.25, 0.75});
  return {
      {"mean", {scores({4, 3}), four}},
      {"sum", {scores({4, 3}), four}, {{"reduction", "sum"}}},
      {"none", {scores({4, 3}), four}, {{"reduction", "none"}}},
      {"i32_labels", {scores({2, 5}), labels({2}, {4, 0}, DType::i32)}},
      {"weights", {scores({4, 3}), four, w3}},
      {"weights_none", {scores({4, 3}), four, w3}, {{"reduction", "none"}}},
      {"ignore", {scores({4, 3}), four}, {{"ignore_index", 2}}},
      {"ignore_outside",
       {scores({4, 3}), labels({4}, {0, -100, 1, 2}), w3},
       {{"ignore_index", -100}}},
      {"spatial", {scores({2, 4, 2, 3}), seg}},
      {"spatial_none", {scores({2, 4, 2, 3}), seg}, {{"reduction", "none"}}},
      {"spatial_weights_ignore", {scores({2, 4, 2, 3}), seg, w4}, {{"ignore_index", 3}}},
      {"one_class", {scores({3, 1}), labels({3}, {0, 0, 0})}},
      {"empty", {scores({0, 3}), labels({0}, {})}, {{"reduction", "sum"}}},
      {"odd_row", {scores({3, 517}), labels({3}, {516, 0, 200})}},
      {"large", {scores({1200, 33}), labels({1200}, cycling_labels(1200, 33))}},
      {"large_spatial",
       {scores({2, 5, 7, 311}), labels({2, 7, 311}, cycling_labels(2 * 7 * 311, 5))}},
  };
}

/// The same with the second output.
std::vector<Sample> cross_entropy_samples() {
  std::vector<Sample> samples = loss_samples();
  for (Sample& sample : loss_samples()) {
    sample.name += "_log_prob";
    sample.outputs = 2;
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<Sample> smoothed_samples() {
  std::vector<Sample> samples = cross_entropy_samples();
  for (Sample& sample : loss_samples()) {
    sample.name += "_smoothed";
    sample.attributes.set({"label_smoothing", 0.1F});
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<Sample> as_grad_samples(std::vector<Sample> samples) {
  for (Sample& sample : samples) {
    sample.outputs = 1;
    const bool is_scalar = sample.attributes.get_string("reduction", "mean") != "none";
    const Shape shape = is_scalar ? Shape() : sample.inputs[1].shape;
    sample.inputs.insert(sample.inputs.begin(), SampleInput{.shape = shape});
  }
  return samples;
}

std::vector<Sample> nll_grad_samples() {
  return as_grad_samples(loss_samples());
}
std::vector<Sample> cross_entropy_grad_samples() {
  std::vector<Sample> samples;
  for (Sample& sample : smoothed_samples()) {
    if (sample.outputs == 1) samples.push_back(std::move(sample));
  }
  return as_grad_samples(std::move(samples));
}

std::vector<AttributeDef> loss_attributes(bool smoothed) {
  std::vector<AttributeDef> list{{"ignore_index", AttributeType::integer},
                                 {"reduction", AttributeType::text}};
  if (smoothed) list.push_back({"label_smoothing", AttributeType::number});
  return list;
}

OpDef loss_grad(std::string_view name, bool smoothed, Lowering lower, Samples samples) {
  return {.name = name,
          .domain = kInternalDomain,
          .since = {{1}},
          .inputs = {{"loss_gradient"}, {"scores"}, {"labels"}, {"weights", Arity::optional}},
          .outputs = {{"scores_gradient"}},
          .attributes = loss_attributes(smoothed),
          .infer = infer_loss_grad,
          .aliases = {{0, 1, AliasKind::in_place}},
          .lower = lower,
          .backward = NotDifferentiable{"second derivatives of a fused loss are not written; "
                                        "compose the loss of LogSoftmax and Gather instead"},
          .samples = samples};
}

}  // namespace

/// SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss, and CrossEntropy: the first with
/// label_smoothing as in torch.nn.CrossEntropyLoss. A label outside [0, C) that is not ignored is
/// never used as an index: its loss and gradients are NaN. When every label is ignored the mean is
/// NaN, as in PyTorch. CrossEntropyGrad computes (softmax - target) * weight from the scores,
/// which is no more work than from stored probabilities and needs no memory for them.
void register_loss(OpRegistry& registry) {
  const std::vector<Param> inputs{{"scores"}, {"labels"}, {"weights", Arity::optional}};
  registry.add({.name = "SoftmaxCrossEntropyLoss",
                .since = {{12}, {13, "bfloat16"}},
                .inputs = inputs,
                .outputs = {{"output"}, {"log_prob", Arity::optional}},
                .attributes = loss_attributes(false),
                .infer = infer_loss,
                .backward = cross_entropy_rule,
                .samples = cross_entropy_samples});
  registry.add({.name = "CrossEntropy",
                .domain = kInternalDomain,
                .since = {{1}},
                .inputs = inputs,
                .outputs = {{"output"}, {"log_prob", Arity::optional}},
                .attributes = loss_attributes(true),
                .infer = infer_loss,
                .lower = lower_cross_entropy,
                .backward = cross_entropy_rule,
                .samples = smoothed_samples});
  registry.add({.name = "NegativeLogLikelihoodLoss",
                .since = {{12}, {13, "bfloat16"}, {22}},
                .inputs = {{"input"}, {"target"}, {"weight", Arity::optional}},
                .outputs = {{"loss"}},
                .attributes = loss_attributes(false),
                .infer = infer_loss,
                .backward = nll_rule,
                .samples = loss_samples});
  registry.add(
      loss_grad("CrossEntropyGrad", true, lower_cross_entropy_grad, cross_entropy_grad_samples));
  registry.add(loss_grad("NegativeLogLikelihoodLossGrad", false, lower_nll_grad, nll_grad_samples));
}

}  // namespace graft
