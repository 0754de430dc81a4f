#include "core/ops/kernels/elementwise_samples.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

constexpr NotDifferentiable kIntegers{"integers have no gradient"};

std::vector<Sample> bitwise_samples() {
  const SampleInput i32{.low = -2147483648.0, .high = 2147483647.0, .dtype = DType::i32};
  const SampleInput u8{.shape = {7}, .values = {0, 1, 2, 127, 128, 254, 255}, .dtype = DType::u8};
  const SampleInput mask{.shape = {}, .values = {15}, .dtype = DType::u8};
  return binary_samples(i32, i32) + std::vector<Sample>{{"u8", {u8, mask}}};
}

std::vector<Sample> not_samples() {
  return unary_samples(-2147483648.0, 2147483647.0, false, {}, DType::i32) +
         std::vector{value_sample("u8", {0, 1, 127, 255}, {}, DType::u8)};
}

void infer_shift(InferContext& context) {
  const std::string direction = context.attributes().get_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    context.fail(ErrorKind::model, "attribute 'direction' is '", direction,
                 "', wanted 'LEFT' or 'RIGHT'");
  }
  infer_broadcast(context);
}

std::vector<Sample> shift_samples() {
  std::vector<Sample> samples;
  for (const char* const direction : {"LEFT", "RIGHT"}) {
    const std::string suffix = std::string("_") + (direction[0] == 'L' ? "left" : "right");
    const SampleInput x{.low = 0.0, .high = 65535.0, .dtype = DType::u16};
    const SampleInput amount{.low = 0.0, .high = 20.0, .dtype = DType::u16};
    for (Sample& sample : binary_samples(x, amount, {{"direction", direction}})) {
      sample.name += suffix;
      samples.push_back(std::move(sample));
    }
    const SampleInput negative{
        .shape = {7}, .values = {-128, -7, -1, 0, 1, 64, 127}, .dtype = DType::i8};
    const SampleInput far{.shape = {5, 1}, .values = {-1, 0, 3, 8, 100}, .dtype = DType::i8};
    samples.push_back({"i8" + suffix, {negative, far}, {{"direction", direction}}});
  }
  return samples;
}

}  // namespace

/// BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift.
void register_bitwise(OpRegistry& registry) {
  const std::vector<Alias> in_place{{0, 0, AliasKind::in_place}, {0, 1, AliasKind::in_place}};
  for (const std::string_view name : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
    registry.add({.name = name,
                  .since = {{18}},
                  .inputs = {{"A"}, {"B"}},
                  .outputs = {{"C"}},
                  .infer = infer_broadcast,
                  .aliases = in_place,
                  .backward = kIntegers,
                  .samples = bitwise_samples});
  }
  registry.add({.name = "BitwiseNot",
                .since = {{18}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .infer = infer_same,
                .aliases = {{0, 0, AliasKind::in_place}},
                .backward = kIntegers,
                .samples = not_samples});
  registry.add({.name = "BitShift",
                .since = {{11}, {28, "signed integers"}},
                .inputs = {{"X"}, {"Y"}},
                .outputs = {{"Z"}},
                .attributes = {{"direction", AttributeType::text, true}},
                .infer = infer_shift,
                .aliases = in_place,
                .backward = kIntegers,
                .samples = shift_samples});
}

}  // namespace graft
