#include "core/ops/kernels/elementwise_samples.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

const std::vector<Since> kSinceArithmetic{{7, "broadcasting as in NumPy"}, {13, "bfloat16"}, {14}};

/// i32 and u8 results wrap round.
std::vector<Sample> samples_in(double low, double high) {
  const SampleInput number{.low = low, .high = high};
  const SampleInput i32{.low = 1.0, .high = 2147483647.0, .dtype = DType::i32};
  const SampleInput u8{.low = 1.0, .high = 255.0, .dtype = DType::u8};
  std::vector<Sample> samples = binary_samples(number, number);
  for (const SampleInput& input : {i32, u8}) {
    SampleInput row = input;
    row.shape = {7};
    SampleInput column = input;
    column.shape = {2, 1};
    samples.push_back({std::string(name(input.dtype)), {row, column}});
  }
  return samples;
}

std::vector<Sample> signed_arithmetic_samples() {
  return samples_in(-2.0, 2.0);
}
std::vector<Sample> positive_arithmetic_samples() {
  return samples_in(0.5, 2.0);
}

OpDef binary(std::string_view name, Rule rule, Samples samples) {
  return {.name = name,
          .since = kSinceArithmetic,
          .inputs = {{"A"}, {"B"}},
          .outputs = {{"C"}},
          .infer = infer_broadcast,
          .aliases = in_place_of_either(),
          .layout = kElementwise,
          .weights = {0, 1},
          .mixed_precision = kFollows,
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
      signed_arithmetic_samples));
  registry.add(binary(
      "Sub",
      [](const Gradient& g) -> std::vector<Expr> {
        return {g.dy(), -g.dy()};
      },
      signed_arithmetic_samples));
  registry.add(binary(
      "Mul",
      [](const Gradient& g) -> std::vector<Expr> {
        return {g.dy() * g.x(1), g.dy() * g.x(0)};
      },
      signed_arithmetic_samples));
  // d(a/b)/db = -a/b^2 = -y/b
  registry.add(binary(
      "Div",
      [](const Gradient& g) -> std::vector<Expr> {
        const Expr da = g.dy() / g.x(1);
        return {da, -(da * g.y())};
      },
      positive_arithmetic_samples));
}

}  // namespace graft
