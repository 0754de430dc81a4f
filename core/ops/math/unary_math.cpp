#include <numbers>

#include "core/ops/kernels/elementwise_samples.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

const std::vector<Since> kSince6{{6}, {13, "bfloat16"}};
const std::vector<Since> kSince7{{7}, {22, "bfloat16"}};
const std::vector<Since> kSince9{{9}, {22, "bfloat16"}};

using Gradients = std::vector<Expr>;

/// Flat between steps: nothing flows back, as in PyTorch.
Gradients no_flow(const Gradient&) {
  return {};
}

std::vector<Sample> signed_unary_samples() {
  return unary_samples(-2.0, 2.0);
}
std::vector<Sample> positive_unary_samples() {
  return unary_samples(0.3, 4.0);
}
std::vector<Sample> inner_samples() {
  return unary_samples(-0.9, 0.9);
}
std::vector<Sample> step_samples() {
  return unary_samples(-3.0, 3.0, true) +
         std::vector{value_sample("halves", {-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 7.0})};
}
std::vector<Sample> integers_too(std::vector<Sample> samples) {
  return std::move(samples) +
         std::vector{value_sample("i64", {-7, 0, 3, 1099511627776.0}, {}, DType::i64),
                     value_sample("i8", {-128, -1, 0, 127}, {}, DType::i8)};
}

struct UnaryRow {
  std::string_view name;
  const std::vector<Since>& since;
  Rule rule;
  Samples samples = signed_unary_samples;
  std::string_view input = "input";
  std::string_view output = "output";
};

OpDef unary(const UnaryRow& row) {
  return {.name = row.name,
          .since = row.since,
          .inputs = {{row.input}},
          .outputs = {{row.output}},
          .infer = infer_same,
          .aliases = {{0, 0, AliasKind::in_place}},
          .layout = kElementwise,
          .backward = row.rule,
          .samples = row.samples};
}

OpDef unary_xy(std::string_view name, Rule rule, Samples samples) {
  return unary({name, kSince6, rule, samples, "X", "Y"});
}

void register_algebra(OpRegistry& registry) {
  registry.add(unary_xy(
      "Neg", [](const Gradient& g) -> Gradients { return {-g.dy()}; },
      [] { return integers_too(signed_unary_samples()); }));
  // At 0 the gradient is 0, as in PyTorch.
  registry.add(unary_xy(
      "Abs", [](const Gradient& g) -> Gradients { return {g.dy() * call("Sign", {g.x()})}; },
      [] { return integers_too(unary_samples(-2.0, 2.0, true)); }));
  registry.add(unary_xy(
      "Sqrt", [](const Gradient& g) -> Gradients { return {g.dy() / (g.y() * 2.0)}; },
      positive_unary_samples));
  registry.add(unary_xy(
      "Reciprocal", [](const Gradient& g) -> Gradients { return {-(g.dy() * (g.y() * g.y()))}; },
      positive_unary_samples));
  registry.add(unary(
      {"Exp", kSince6, [](const Gradient& g) -> Gradients { return {g.dy() * g.y()}; },
       [] {
         return signed_unary_samples() + std::vector{value_sample("limits", {-200, -88, 0, 88})};
       }}));
  registry.add(
      unary({"Log", kSince6, [](const Gradient& g) -> Gradients { return {g.dy() / g.x()}; },
             [] {
               return positive_unary_samples() +
                      std::vector{value_sample("limits", {-1, 0, 1, 1e-30, 1e30})};
             }}));
  // d erf(x)/dx = 2/sqrt(pi) exp(-x^2)
  registry.add(unary({"Erf",
                      {{9}, {13, "bfloat16"}},
                      [](const Gradient& g) -> Gradients {
                        const double scale = 2.0 * std::numbers::inv_sqrtpi;
                        return {g.dy() * (exp(-(g.x() * g.x())) * scale)};
                      },
                      [] { return unary_samples(-4.5, 4.5); }}));
}

void register_steps(OpRegistry& registry) {
  const std::vector<Since> since_sign{{9}, {13, "bfloat16"}};
  const std::vector<Since> since_round{{11}, {22, "bfloat16"}};
  registry.add(unary({"Sign", since_sign, no_flow, [] { return integers_too(step_samples()); }}));
  registry.add(unary_xy("Floor", no_flow, step_samples));
  registry.add(unary_xy("Ceil", no_flow, step_samples));
  registry.add(unary({"Round", since_round, no_flow, step_samples, "X", "Y"}));
}

void register_trigonometry(OpRegistry& registry) {
  registry.add(unary({"Sin", kSince7, [](const Gradient& g) -> Gradients {
                        return {g.dy() * call("Cos", {g.x()})};
                      }}));
  registry.add(unary({"Cos", kSince7, [](const Gradient& g) -> Gradients {
                        return {-(g.dy() * call("Sin", {g.x()}))};
                      }}));
  // 1/cos(x)^2 = 1 + tan(x)^2
  registry.add(
      unary({"Tan", kSince7,
             [](const Gradient& g) -> Gradients { return {g.dy() * (g.y() * g.y() + 1.0)}; },
             [] { return unary_samples(-1.2, 1.2); }}));
  registry.add(unary({"Asin", kSince7,
                      [](const Gradient& g) -> Gradients {
                        return {g.dy() / sqrt((1.0 - g.x()) * (g.x() + 1.0))};
                      },
                      inner_samples}));
  registry.add(unary({"Acos", kSince7,
                      [](const Gradient& g) -> Gradients {
                        return {-(g.dy() / sqrt((1.0 - g.x()) * (g.x() + 1.0)))};
                      },
                      inner_samples}));
  registry.add(unary({"Atan", kSince7, [](const Gradient& g) -> Gradients {
                        return {g.dy() / (g.x() * g.x() + 1.0)};
                      }}));
}

void register_hyperbolic(OpRegistry& registry) {
  registry.add(unary({"Sinh", kSince9, [](const Gradient& g) -> Gradients {
                        return {g.dy() * call("Cosh", {g.x()})};
                      }}));
  registry.add(unary({"Cosh", kSince9, [](const Gradient& g) -> Gradients {
                        return {g.dy() * call("Sinh", {g.x()})};
                      }}));
  registry.add(unary({"Asinh", kSince9, [](const Gradient& g) -> Gradients {
                        return {g.dy() / sqrt(g.x() * g.x() + 1.0)};
                      }}));
  // Products of sums instead of x^2 - 1: no cancellation near 1.
  registry.add(unary({"Acosh", kSince9,
                      [](const Gradient& g) -> Gradients {
                        return {g.dy() / sqrt((g.x() - 1.0) * (g.x() + 1.0))};
                      },
                      [] { return unary_samples(1.2, 4.0); }}));
  registry.add(unary(
      {"Atanh", kSince9,
       [](const Gradient& g) -> Gradients { return {g.dy() / ((1.0 - g.x()) * (g.x() + 1.0))}; },
       inner_samples}));
}

}  // namespace

/// Mathematical functions of one input. Tanh stands with the activations.
void register_unary_math(OpRegistry& registry) {
  register_algebra(registry);
  register_steps(registry);
  register_trigonometry(registry);
  register_hyperbolic(registry);
}

}  // namespace graft
