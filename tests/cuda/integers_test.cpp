// Element-wise ops on integers and f64, casts between all types, and drawn classes: the card has
// the CPU's bits, at the ends of the types' ranges too.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/ops/builder.h"
#include "core/runtime/plan.h"
#include "tests/core/error_of.h"
#include "tests/cuda/on_card.h"

namespace graft {
namespace {

using test::card;

/// What one node gives on a device.
Tensor run(const char* op, const std::vector<Tensor>& inputs, Device& device,
           const Attributes& attributes = {}, const RunState& state = {}) {
  auto graph = std::make_unique<Graph>("one");
  std::vector<Value*> values;
  for (const Tensor& input : inputs) {
    values.push_back(graph->add_input("x" + std::to_string(values.size()),
                                      {input.dtype(), SymShape(input.shape())}));
  }
  graph->add_output(Builder(*graph).node(op, "", values, 1, attributes)->output());
  Plan plan(std::move(graph), {.device = &device});
  plan.run(inputs, state);
  return plan.output(0).to(cpu()).clone();
}

template <class T>
Tensor row(const std::vector<T>& values) {
  return Tensor::from<T>({static_cast<std::int64_t>(values.size())}, values);
}

/// Each pair of them.
template <class T>
void expect_equal_on_pairs(const std::vector<T>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor x = row(values).reshaped({count, 1});
  const Tensor y = row(values);
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "Less",
                         "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    const bool needs_fmod = std::is_floating_point_v<T> && std::string(op) == "Mod";
    const Attributes attributes =
        needs_fmod ? Attributes{{"fmod", AttributeValue(std::int64_t{1})}} : Attributes();
    EXPECT_TRUE(equal_bits(run(op, {x, y}, card(), attributes), run(op, {x, y}, cpu(), attributes)))
        << op;
  }
  for (const char* op : {"Neg", "Abs", "Sign"}) {
    EXPECT_TRUE(equal_bits(run(op, {y}, card()), run(op, {y}, cpu()))) << op;
  }
}

TEST(Integers, WrapRoundAsOnTheCpu) {
  using I64 = std::numeric_limits<std::int64_t>;
  using I32 = std::numeric_limits<std::int32_t>;
  expect_equal_on_pairs<std::int64_t>({I64::min(), -7, -1, 0, 1, 3, 1099511627776, I64::max()});
  expect_equal_on_pairs<std::int32_t>({I32::min(), -7, -1, 0, 1, 3, 65537, I32::max()});
}

TEST(Integers, DoublesAreNoFloats) {
  expect_equal_on_pairs<double>({-1e300, -3.5, -0.0, 0.0, 1.0 / 3.0, 2.0, 1e-320, INFINITY});
}

TEST(Integers, AreCastAsOnTheCpu) {
  const std::vector<double> numbers{
      0.0,   -0.0,         1.0,    -1.5,    2.5,     127.6,      -129.0, 300.0,       65536.5,
      -4e9,  4294967296.0, 9.3e18, -1e19,   1e39,    16777217.0, NAN,    INFINITY,    -INFINITY,
      1e-41, 6.1e-5,       3e-6,   -2.4e-8, 65519.0, 65520.0,    0.3333, 1.003906251, 33554435.0};
  const Tensor source = row(numbers);
  for (const DType from :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16,
        DType::i8, DType::u32, DType::u16, DType::u8, DType::boolean}) {
    const Tensor x = source.cast(from);
    for (const DType to :
         {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i16,
          DType::i8, DType::u32, DType::u16, DType::u8, DType::boolean}) {
      const Attributes attributes{{"to", static_cast<int>(to)}};
      EXPECT_TRUE(
          equal_bits(run("Cast", {x}, card(), attributes), run("Cast", {x}, cpu(), attributes)))
          << from << " to " << to;
    }
  }
}

/// As many axes as do not merge, and one more.
TEST(Integers, OperandsBroadcastAlongSixAxes) {
  const auto striped = [](int axes, int first) {
    std::vector<std::int64_t> dims;
    for (int i = 0; i < axes; ++i) dims.push_back(i % 2 == first ? 2 : 1);
    const Tensor tensor = Tensor::zeros(DType::i64, Shape(dims));
    std::int64_t next = 0;
    for (std::int64_t& value : tensor.values<std::int64_t>()) value = 10 * ++next + first;
    return tensor;
  };
  const std::vector<Tensor> six{striped(6, 0), striped(6, 1)};
  EXPECT_TRUE(equal_bits(run("Sub", six, card()), run("Sub", six, cpu())));
  EXPECT_EQ(kind_of([&] {
              run("Sub", {striped(7, 0), striped(7, 1)}, card());
            }),
            ErrorKind::unsupported);
}

TEST(Integers, ClassesAndCoinsAreDrawnAsOnTheCpu) {
  const Tensor scores = Tensor::from<float>({2, 4}, {0, 1, -2, 3, 5, 5, 5, 5});
  const Attributes many{{"sample_size", 300}, {"dtype", static_cast<int>(DType::i64)}};
  const Tensor chances = Tensor::full(DType::f32, {500}, 0.3);
  for (std::size_t i = 0; i < 500; i += 7) chances.values<float>()[i] = i % 2 == 0 ? 0.0F : 1.0F;
  Tensor last;
  for (const std::uint64_t step : {0, 1}) {
    const Tensor drawn = run("Multinomial", {scores}, card(), many, {.step = step});
    EXPECT_TRUE(equal_bits(drawn, run("Multinomial", {scores}, cpu(), many, {.step = step})));
    EXPECT_FALSE(equal_bits(drawn, last)) << "each run draws anew";
    last = drawn;
    EXPECT_TRUE(equal_bits(run("Bernoulli", {chances}, card(), {}, {.step = step}),
                           run("Bernoulli", {chances}, cpu(), {}, {.step = step})));
  }
}

/// The number of an element does not depend on whether others have a choice.
TEST(Integers, ACoinIsThatOfItsElement) {
  for (Device* const device : devices()) {
    const Tensor all = Tensor::full(DType::f32, {64}, 0.5);
    const Tensor but_one = all.clone();
    but_one.values<float>()[0] = 0.0F;
    const Tensor tossed = run("Bernoulli", {all}, *device);
    const Tensor others = run("Bernoulli", {but_one}, *device);
    for (std::size_t i = 1; i < 64; ++i) {
      EXPECT_EQ(tossed.values<float>()[i], others.values<float>()[i]) << i;
    }
  }
}

}  // namespace
}  // namespace graft
