#include "core/ops/math/activation.h"
#include "core/ops/math/activation_lowering.h"

namespace graft {
namespace {

using Gradients = std::vector<Expr>;

std::vector<Sample> wide_samples() {
  return unary_samples(-6.0, 6.0) +
         std::vector{value_sample("far", {-1e4, -100, -30, -20, 20, 30, 100, 1e4})};
}

std::vector<Sample> wide_gradient_samples() {
  return gradient_samples(wide_samples());
}

/// Of the result of a sigmoid or tanh.
std::vector<Sample> unit_gradient_samples() {
  return gradient_samples(unary_samples(-1.0, 1.0));
}

/// Default attributes, then others, on `samples`.
std::vector<Sample> also_all_with(std::vector<Sample> samples, std::string_view suffix,
                                  const Attributes& attributes) {
  const std::size_t count = samples.size();
  for (std::size_t i = 0; i < count; ++i) {
    samples.push_back(samples[i]);
    samples.back().name += suffix;
    samples.back().attributes = attributes;
  }
  return samples;
}

std::vector<Sample> gelu_samples() {
  return also_all_with(wide_samples(), "_tanh", {{"approximate", "tanh"}});
}

std::vector<Sample> swish_samples() {
  return also_all_with(wide_samples(), "_alpha", {{"alpha", 1.7F}});
}

void infer_gelu(InferContext& context) {
  const std::string approximate = context.attributes().get_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    context.fail(ErrorKind::model, "attribute 'approximate' is '", approximate,
                 "', wanted 'none' or 'tanh'");
  }
  infer_same(context);
}

/// Calls the fused gradient with the activation's attributes.
Expr fused(std::string_view op, const Expr& saved, const Gradient& g) {
  return call_internal(op, {saved, g.dy()}, g.attributes());
}

void register_sigmoids(OpRegistry& registry) {
  const std::vector<Since> since{{6}, {13, "bfloat16"}};
  add_with_gradient(
      registry,
      activation_row(
          "Sigmoid", since, {},
          [](const Gradient& g) -> Gradients { return {fused("SigmoidGrad", g.y(), g)}; },
          wide_samples),
      activation_gradient_row("SigmoidGrad", "Y", {}, lower_sigmoid_grad, unit_gradient_samples));
  add_with_gradient(
      registry,
      activation_row(
          "Tanh", since, {},
          [](const Gradient& g) -> Gradients { return {fused("TanhGrad", g.y(), g)}; },
          wide_samples),
      activation_gradient_row("TanhGrad", "Y", {}, lower_tanh_grad, unit_gradient_samples));
}

void register_gated(OpRegistry& registry) {
  const std::vector<AttributeDef> approximate{{"approximate", AttributeType::text}};
  const std::vector<AttributeDef> alpha{{"alpha", AttributeType::number}};
  OpDef gelu = activation_row(
      "Gelu", {{20}}, approximate,
      [](const Gradient& g) -> Gradients { return {fused("GeluGrad", g.x(), g)}; }, gelu_samples);
  gelu.infer = infer_gelu;
  add_with_gradient(registry, std::move(gelu),
                    activation_gradient_row("GeluGrad", "X", approximate, lower_gelu_grad,
                                            [] { return gradient_samples(gelu_samples()); }));
  add_with_gradient(
      registry,
      activation_row(
          "Swish", {{24}}, alpha,
          [](const Gradient& g) -> Gradients { return {fused("SwishGrad", g.x(), g)}; },
          swish_samples),
      activation_gradient_row("SwishGrad", "X", alpha, lower_swish_grad,
                              [] { return gradient_samples(swish_samples()); }));
  add_with_gradient(
      registry,
      activation_row(
          "Mish", {{18}, {22, "bfloat16"}}, {},
          [](const Gradient& g) -> Gradients { return {fused("MishGrad", g.x(), g)}; },
          wide_samples),
      activation_gradient_row("MishGrad", "X", {}, lower_mish_grad, wide_gradient_samples));
}

void register_soft(OpRegistry& registry) {
  const std::vector<Since> since{{1}, {22, "bfloat16"}};
  registry.add(activation_row(
      "Softplus", since, {},
      [](const Gradient& g) -> Gradients { return {g.dy() * sigmoid(g.x())}; }, wide_samples));
  // x / (1 + |x|) has the derivative 1 / (1 + |x|)^2, which is smooth at 0.
  registry.add(activation_row(
      "Softsign", since, {},
      [](const Gradient& g) -> Gradients {
        const Expr base = call("Abs", {g.x()}) + 1.0;
        return {g.dy() / (base * base)};
      },
      wide_samples));
}

}  // namespace

/// Activations without kinks, and the fused gradients of the frequent ones.
void register_activation_smooth(OpRegistry& registry) {
  register_sigmoids(registry);
  register_gated(registry);
  register_soft(registry);
}

}  // namespace graft
