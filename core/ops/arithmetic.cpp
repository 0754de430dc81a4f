#include "core/ops/registry.h"

namespace graft {
namespace {

const std::vector<Since> kSince{{7, "broadcasting as in NumPy"}, {13, "bfloat16"}, {14}};
const std::vector<Alias> kInPlace{{0, 0, AliasKind::in_place}, {0, 1, AliasKind::in_place}};

/// Two operands: same shape, broadcasting either way and both, scalars, an empty tensor.
std::vector<Sample> binary_samples(double low, double high) {
  const auto input = [&](Shape shape) {
    return SampleInput{.shape = std::move(shape), .low = low, .high = high};
  };
  return {
      {"same_shape", {input({2, 3}), input({2, 3})}},
      {"right_row", {input({2, 3}), input({3})}},
      {"left_column", {input({2, 1}), input({2, 3})}},
      {"both", {input({2, 1, 4}), input({3, 1})}},
      {"channel", {input({2, 3, 4, 5}), input({1, 3, 1, 1})}},
      {"scalars", {input({}), input({})}},
      {"right_scalar", {input({5}), input({})}},
      {"empty", {input({0, 3}), input({3})}},
      {"one_size_dims", {input({1, 1}), input({1, 1})}},
  };
}

std::vector<Sample> any_samples() {
  return binary_samples(-2.0, 2.0);
}
std::vector<Sample> positive_samples() {
  return binary_samples(0.5, 2.0);
}

OpDef binary(std::string_view name, Rule rule, Samples samples) {
  return {.name = name,
          .since = kSince,
          .inputs = {{"A"}, {"B"}},
          .outputs = {{"C"}},
          .infer = infer_broadcast,
          .aliases = kInPlace,
          .weights = {0, 1},
          .backward = rule,
          .samples = samples};
}

}  // namespace

/// Add, Sub, Mul, Div. The engine sums gradients back to the operands' shapes.
void register_arithmetic(OpRegistry& registry) {
  registry.add(binary(
      "Add",
      [](const Gradient& g) -> std::vector<Expr> {
        return {g.dy(), g.dy()};
      },
      any_samples));
  registry.add(binary(
      "Sub",
      [](const Gradient& g) -> std::vector<Expr> {
        return {g.dy(), -g.dy()};
      },
      any_samples));
  registry.add(binary(
      "Mul",
      [](const Gradient& g) -> std::vector<Expr> {
        return {g.dy() * g.x(1), g.dy() * g.x(0)};
      },
      any_samples));
  // d(a/b)/db = -a/b^2 = -y/b
  registry.add(binary(
      "Div",
      [](const Gradient& g) -> std::vector<Expr> {
        const Expr da = g.dy() / g.x(1);
        return {da, -(da * g.y())};
      },
      positive_samples));
}

}  // namespace graft
