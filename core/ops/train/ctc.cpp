#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

bool reduces(const InferContext& context) {
  const std::string reduction = context.attributes().get_string("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") {
    context.fail(ErrorKind::model, "reduction is '", reduction,
                 "', wanted 'mean', 'sum' or 'none'");
  }
  return reduction != "none";
}

/// log_probabilities and targets are inputs `first` and first + 1. Returns the batch.
Dim check_ctc_inputs(const InferContext& context, int first) {
  context.require_rank(first, 3, 3);
  context.require_rank(first + 1, 2, 2);
  const DType targets = context.dtype(first + 1);
  if (targets != DType::undefined && targets != DType::i64) {
    context.fail(ErrorKind::type, "targets are ", targets, ", wanted i64");
  }
  const std::int64_t blank = context.attributes().get_int("blank", 0);
  const SymShape* const scores = context.shape(first);
  const bool known = scores != nullptr && (*scores)[2].is_known();
  if (blank < 0 || (known && blank >= (*scores)[2].value())) {
    context.fail(ErrorKind::argument, "blank is ", blank, ", wanted a class, of which there are ",
                 known ? (*scores)[2] : Dim());
  }
  if (scores == nullptr) return {};
  require_dim(context, first + 1, 0, (*scores)[1]);
  return (*scores)[1];
}

void infer_ctc(InferContext& context) {
  const Dim batch = check_ctc_inputs(context, 0);
  context.set_output(0, context.dtype(0), reduces(context) ? SymShape() : SymShape{batch});
}

void infer_ctc_grad(InferContext& context) {
  const Dim batch = check_ctc_inputs(context, 1);
  context.require_same_dtype({0, 1});
  const int rank = reduces(context) ? 0 : 1;
  context.require_rank(0, rank, rank);
  if (rank == 1) require_dim(context, 0, 0, batch);
  context.copy_type(1);
}

std::vector<Expr> ctc_rule(const Gradient& g) {
  return {call_internal("CtcLossGrad", {g.dy(), g.x(0), g.x(1)}, g.attributes())};
}

std::vector<Sample> ctc_samples() {
  const auto scores = [](Shape shape) {
    return SampleInput{.shape = std::move(shape), .low = -3.0, .high = -0.2};
  };
  const auto targets = [](Shape shape, std::vector<double> values) {
    return SampleInput{.shape = std::move(shape), .values = std::move(values), .dtype = DType::i64};
  };
  const SampleInput three = targets({2, 3}, {1, 2, 1, 3, 3, 2});
  // Sample 1 needs four steps for its two equal labels in a row and one more.
  const SampleInput impossible = targets({2, 3}, {1, 2, 1, 2, 2, 1});
  std::vector<double> many;
  for (int i = 0; i < 9 * 20; ++i) many.push_back(i * 7 % 40 + 1);
  return {
      {"mean", {scores({6, 2, 4}), three}},
      {"sum", {scores({6, 2, 4}), three}, {{"reduction", "sum"}}},
      {"none", {scores({6, 2, 4}), three}, {{"reduction", "none"}}},
      {"blank_last", {scores({6, 2, 5}), three}, {{"blank", 4}}},
      {"padded", {scores({5, 3, 4}), targets({3, 2}, {1, 2, 3, -1, -1, -1})}},
      {"tight", {scores({3, 1, 4}), targets({1, 3}, {1, 2, 3})}},
      {"impossible",
       {scores({3, 2, 4}), impossible},
       {{"zero_infinity", 1}, {"reduction", "none"}}},
      {"impossible_mean", {scores({3, 2, 4}), impossible}, {{"zero_infinity", 1}}},
      {"no_labels", {scores({3, 2, 4}), targets({2, 0}, {})}, {{"reduction", "sum"}}},
      {"no_steps", {scores({0, 1, 4}), targets({1, 0}, {})}},
      {"no_samples", {scores({3, 0, 4}), targets({0, 2}, {})}, {{"reduction", "sum"}}},
      {"one_step", {scores({1, 1, 2}), targets({1, 1}, {1})}},
      {"large", {scores({60, 9, 41}), targets({9, 20}, many)}},
  };
}

std::vector<Sample> ctc_grad_samples() {
  std::vector<Sample> samples = ctc_samples();
  for (Sample& sample : samples) {
    const bool is_scalar = sample.attributes.get_string("reduction", "mean") != "none";
    const Shape shape = is_scalar ? Shape() : Shape{sample.inputs[0].shape[1]};
    sample.inputs.insert(sample.inputs.begin(), SampleInput{.shape = shape});
  }
  return samples;
}

const std::vector<AttributeDef> kCtcAttributes{{"blank", AttributeType::integer},
                                               {"reduction", AttributeType::text},
                                               {"zero_infinity", AttributeType::integer}};

}  // namespace

/// CtcLoss: minus the logarithm of the probability that a sequence of log-probabilities [T,B,C]
/// spells the targets [B,L], by the forward-backward algorithm (Graves et al., "Connectionist
/// Temporal Classification", 2006). A target ends before its first negative entry. Reductions as in
/// torch.nn.CTCLoss: "mean" divides each loss by its target's length (at least 1). A target that
/// does not fit has an infinite loss and gradients of NaN, or zeros with zero_infinity. A label
/// that is no class gives NaN. The gradient is that of the log-probabilities alone; PyTorch adds
/// what a LogSoftmax before them takes away again.
void register_ctc(OpRegistry& registry) {
  registry.add({.name = "CtcLoss",
                .domain = kInternalDomain,
                .since = {{1}},
                .inputs = {{"log_probabilities"}, {"targets"}},
                .outputs = {{"loss"}},
                .attributes = kCtcAttributes,
                .infer = infer_ctc,
                .backward = ctc_rule,
                .samples = ctc_samples});
  registry.add({.name = "CtcLossGrad",
                .domain = kInternalDomain,
                .since = {{1}},
                .inputs = {{"loss_gradient"}, {"log_probabilities"}, {"targets"}},
                .outputs = {{"gradient"}},
                .attributes = kCtcAttributes,
                .infer = infer_ctc_grad,
                .backward = NotDifferentiable{"second derivatives of a fused loss are not written"},
                .samples = ctc_grad_samples});
}

}  // namespace graft
