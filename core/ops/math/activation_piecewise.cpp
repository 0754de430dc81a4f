#include "core/ops/builder.h"
#include "core/ops/math/activation.h"
#include "core/ops/math/activation_lowering.h"

namespace graft {
namespace {

using Gradients = std::vector<Expr>;

const std::vector<AttributeDef> kAlpha{{"alpha", AttributeType::number}};

std::vector<Sample> kinked_samples() {
  return unary_samples(-5.0, 5.0, true) +
         std::vector{value_sample("kinks", {-3, -2.5, -1, -0.0, 0.0, 1, 2.5, 3, 100, -100})};
}

std::vector<Sample> kinked_gradient_samples() {
  return gradient_samples(kinked_samples());
}

/// The samples, and one with other attributes.
std::vector<Sample> also_once_with(std::vector<Sample> samples, const Attributes& attributes) {
  samples.push_back(samples.front());
  samples.back().name = "attributes";
  samples.back().attributes = attributes;
  return samples;
}

std::vector<Sample> alpha_samples() {
  return also_once_with(kinked_samples(), {{"alpha", 0.4F}});
}

std::vector<Sample> relu_samples() {
  return kinked_samples() + std::vector{value_sample("i32", {-7, 0, 7}, {}, DType::i32)};
}

/// At 0 the gradient is 0, as in PyTorch. What is saved is Y, which the next layer keeps anyway.
void register_relu(OpRegistry& registry) {
  add_with_gradient(
      registry,
      activation_row(
          "Relu", {{6}, {13, "bfloat16"}, {14, "signed integers"}}, {},
          [](const Gradient& g) -> Gradients {
            return {call_internal("ReluGrad", {g.y(), g.dy()})};
          },
          relu_samples),
      activation_gradient_row("ReluGrad", "Y", {}, lower_relu_grad, kinked_gradient_samples));
}

/// At 0 the slope is that of the negative side, as in PyTorch.
void register_leaky_relu(OpRegistry& registry) {
  add_with_gradient(registry,
                    activation_row(
                        "LeakyRelu", {{6}, {16, "bfloat16"}}, kAlpha,
                        [](const Gradient& g) -> Gradients {
                          return {call_internal("LeakyReluGrad", {g.x(), g.dy()}, g.attributes())};
                        },
                        alpha_samples),
                    activation_gradient_row("LeakyReluGrad", "X", kAlpha, lower_leaky_relu_grad,
                                            [] { return gradient_samples(alpha_samples()); }));
}

void infer_prelu(InferContext& context) {
  context.require_same_dtype({0, 1});
  const auto joined = broadcast_inputs(context);
  const SymShape* const x = context.shape(0);
  if (joined && joined->known() && x->known() && joined->known() != x->known()) {
    context.fail(ErrorKind::shape, "the slope's shape ", *context.shape(1),
                 " does not broadcast to ", *x);
  }
  context.copy_type(0);
}

std::vector<Sample> prelu_samples() {
  const auto sample = [](std::string name, Shape x, Shape slope) {
    return Sample{std::move(name),
                  {{.shape = std::move(x), .low = -3.0, .high = 3.0},
                   {.shape = std::move(slope), .low = 0.1, .high = 0.9}}};
  };
  std::vector<Sample> samples{sample("same_shape", {3, 5}, {3, 5}),
                              sample("channel", {2, 3, 4, 5}, {3, 1, 1}),
                              sample("one_slope", {3, 5}, {1}),
                              sample("scalar", {}, {}),
                              sample("row", {3, 5}, {5}),
                              sample("empty", {0, 5}, {5}),
                              sample("many", {4, 3, 57, 59}, {3, 1, 1})};
  samples.back().no_gradient_check = kKinks;
  const SampleInput x{.shape = {4}, .values = {-4, -1, 0, 3}, .dtype = DType::i64};
  const SampleInput slope{.shape = {1}, .values = {5}, .dtype = DType::i64};
  samples.push_back({"i64", {x, slope}});
  return samples;
}

/// At 0 the slope is that of the negative side, as in PyTorch.
Gradients prelu_rule(const Gradient& g) {
  const Expr zero = constant_like(g.x(), 0.0);
  const Expr is_positive = greater(g.x(), zero);
  return {where(is_positive, g.dy(), g.dy() * g.x(1)), where(is_positive, zero, g.dy() * g.x())};
}

void register_prelu(OpRegistry& registry) {
  registry.add({.name = "PRelu",
                .since = {{7, "the slope broadcasts"}, {9, "integers"}, {16, "bfloat16"}},
                .inputs = {{"X"}, {"slope"}},
                .outputs = {{"Y"}},
                .infer = infer_prelu,
                .aliases = {{0, 0, AliasKind::in_place}},
                .weights = {1},
                .backward = prelu_rule,
                .samples = prelu_samples});
}

void register_thresholded_relu(OpRegistry& registry) {
  registry.add(activation_row(
      "ThresholdedRelu", {{10}, {22, "bfloat16"}}, kAlpha,
      [](const Gradient& g) -> Gradients {
        const Expr alpha = constant_like(g.x(), g.attributes().get_float("alpha", 1.0F));
        return {where(greater(g.x(), alpha), g.dy(), constant_like(g.x(), 0.0))};
      },
      alpha_samples));
}

/// x p for x > 0, else s (e^(r x) - 1): Elu, Selu and Celu. At 0 the slope is that of the negative
/// side, as in PyTorch.
Gradients exponential_rule(const Gradient& g, double p, double s, double r) {
  const Expr negative = g.dy() * (exp(g.x() * r) * (s * r));
  return {where(greater(g.x(), constant_like(g.x(), 0.0)), g.dy() * p, negative)};
}

void register_exponential(OpRegistry& registry) {
  registry.add(activation_row(
      "Elu", {{6}, {22, "bfloat16"}}, kAlpha,
      [](const Gradient& g) -> Gradients {
        return exponential_rule(g, 1.0, g.attributes().get_float("alpha", 1.0F), 1.0);
      },
      alpha_samples));
  registry.add(activation_row(
      "Selu", {{6}, {22, "bfloat16"}},
      {{"alpha", AttributeType::number}, {"gamma", AttributeType::number}},
      [](const Gradient& g) -> Gradients {
        const double alpha = g.attributes().get_float("alpha", kSeluAlpha);
        const double gamma = g.attributes().get_float("gamma", kSeluGamma);
        return exponential_rule(g, gamma, gamma * alpha, 1.0);
      },
      [] {
        return also_once_with(kinked_samples(), {{"alpha", 2.0F}, {"gamma", 3.0F}});
      }));
  registry.add(activation_row(
      "Celu", {{12}, {28, "other floats"}}, kAlpha,
      [](const Gradient& g) -> Gradients {
        const double alpha = g.attributes().get_float("alpha", 1.0F);
        return exponential_rule(g, 1.0, alpha, 1.0 / alpha);
      },
      alpha_samples));
}

/// At the two kinks the gradient is 0, as in PyTorch.
void register_hard_sigmoid(OpRegistry& registry) {
  registry.add(activation_row(
      "HardSigmoid", {{6}, {22, "bfloat16"}},
      {{"alpha", AttributeType::number}, {"beta", AttributeType::number}},
      [](const Gradient& g) -> Gradients {
        const Expr zero = constant_like(g.y(), 0.0);
        const Expr one = constant_like(g.y(), 1.0);
        const Expr is_inside = call("And", {greater(g.y(), zero), less(g.y(), one)});
        return {where(is_inside, g.dy() * g.attributes().get_float("alpha", 0.2F), zero)};
      },
      [] {
        return also_once_with(kinked_samples(), {{"alpha", 0.5F}, {"beta", 0.6F}});
      }));
}

/// At -3 the gradient is 0 and at 3 it is 1.
void register_hard_swish(OpRegistry& registry) {
  add_with_gradient(registry,
                    activation_row(
                        "HardSwish", {{14}, {22, "bfloat16"}}, {},
                        [](const Gradient& g) -> Gradients {
                          return {call_internal("HardSwishGrad", {g.x(), g.dy()})};
                        },
                        kinked_samples),
                    activation_gradient_row("HardSwishGrad", "X", {}, lower_hard_swish_grad,
                                            kinked_gradient_samples));
}

/// x + bias below -lambd, x - bias above lambd, else 0, where the gradient is 0 too. Integers are
/// computed in f64.
std::vector<Expr> expand_shrink(const Node& node, Builder& builder) {
  const DType out = node.input(0)->dtype();
  const DType type = is_integer(out) ? DType::f64 : out;
  const Expr x = cast(builder.expr(node.input(0)), type);
  const auto bias = static_cast<double>(node.attributes.get_float("bias", 0.0F));
  const auto lambd = static_cast<double>(node.attributes.get_float("lambd", 0.5F));
  const Expr above = where(greater(x, constant_like(x, lambd)), x - bias, constant_like(x, 0.0));
  return {cast(where(less(x, constant_like(x, -lambd)), x + bias, above), out)};
}

void register_shrink(OpRegistry& registry) {
  registry.add({.name = "Shrink",
                .since = {{9}},
                .inputs = {{"input"}},
                .outputs = {{"output"}},
                .attributes = {{"bias", AttributeType::number}, {"lambd", AttributeType::number}},
                .infer = infer_same,
                .backward = Decomposition{expand_shrink},
                .samples = [] {
                  return also_once_with(kinked_samples(), {{"bias", 1.5F}, {"lambd", 1.5F}});
                }});
}

}  // namespace

/// Activations made of pieces, and the fused gradients of the frequent ones. Clip has its own file.
void register_activation_piecewise(OpRegistry& registry) {
  register_relu(registry);
  register_leaky_relu(registry);
  register_prelu(registry);
  register_thresholded_relu(registry);
  register_exponential(registry);
  register_hard_sigmoid(registry);
  register_hard_swish(registry);
  register_shrink(registry);
}

}  // namespace graft
