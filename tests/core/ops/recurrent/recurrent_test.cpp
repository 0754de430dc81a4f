#include <gmock/gmock.h>

#include <cmath>

#include "core/ops/kernel.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::floats;

using Texts = std::vector<std::string>;

Attribute activations(Texts names) {
  return {"activations", AttributeValue(std::move(names))};
}

/// One number an element of everything: x = 1, 2, ...
Tensor ramp(const Shape& shape) {
  Tensor tensor = Tensor::empty(DType::f32, shape);
  float next = 0.0F;
  for (float& value : tensor.values<float>()) value = next += 1.0F;
  return tensor;
}
Tensor filled(const Shape& shape, float value) {
  Tensor tensor = Tensor::empty(DType::f32, shape);
  for (float& element : tensor.values<float>()) element = value;
  return tensor;
}

/// An RNN that adds up: h = 1 * x + 1 * h.
std::vector<Tensor> running_sum(const Tensor& x, Attributes attributes, const Tensor& lengths = {},
                                std::int64_t directions = 1) {
  attributes.set(activations(Texts(static_cast<std::size_t>(directions), "Affine")));
  const Tensor one = filled({directions, 1, 1}, 1.0F);
  return call_op("RNN", {x, one, one, {}, lengths}, std::move(attributes), 2);
}

TEST(Rnn, GoesForwardBackwardAndBoth) {
  const Tensor x = ramp({3, 1, 1});
  EXPECT_THAT(floats(running_sum(x, {})[0]), ElementsAre(1, 3, 6));
  EXPECT_THAT(floats(running_sum(x, {{"direction", "reverse"}})[0]), ElementsAre(6, 5, 3));
  const auto both = running_sum(x, {{"direction", "bidirectional"}}, {}, 2);
  EXPECT_EQ(both[0].shape(), Shape({3, 2, 1, 1}));
  EXPECT_THAT(floats(both[0]), ElementsAre(1, 6, 3, 5, 6, 3));
  EXPECT_THAT(floats(both[1]), ElementsAre(6, 6));
}

TEST(Rnn, BatchFirst) {
  const auto result = running_sum(ramp({2, 3, 1}), {{"layout", 1}});
  EXPECT_EQ(result[0].shape(), Shape({2, 3, 1, 1}));
  EXPECT_THAT(floats(result[0]), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_EQ(result[1].shape(), Shape({2, 1, 1}));
  EXPECT_THAT(floats(result[1]), ElementsAre(6, 15));
}

TEST(Rnn, BehindTheEndOfASequenceOutputsAreZeroAndStatesStay) {
  const Tensor x = ramp({3, 2, 1});  // samples 1, 3, 5 and 2, 4, 6
  const Tensor lengths = Tensor::from<std::int32_t>({2}, {2, 9});
  const auto forward = running_sum(x, {}, lengths);
  EXPECT_THAT(floats(forward[0]), ElementsAre(1, 2, 4, 6, 0, 12));
  EXPECT_THAT(floats(forward[1]), ElementsAre(4, 12));
  const auto reverse = running_sum(x, {{"direction", "reverse"}}, lengths);
  EXPECT_THAT(floats(reverse[0]), ElementsAre(4, 12, 3, 10, 0, 6));
  EXPECT_THAT(floats(reverse[1]), ElementsAre(4, 12));
}

TEST(Rnn, ClipLimitsTheInputOfTheActivation) {
  EXPECT_THAT(floats(running_sum(ramp({3, 1, 1}), {{"clip", 2.5F}})[0]),
              ElementsAre(1, 2.5F, 2.5F));
}

// Gates in the order i, o, f, c. With Affine everywhere and x = h = 0 the biases are the gates.
TEST(Lstm, GatesAndPeepholes) {
  const Tensor x = filled({1, 1, 1}, 0.0F);
  const Tensor w = filled({1, 4, 1}, 0.0F);
  const Tensor b = Tensor::from<float>({1, 8}, {2, 3, 5, 7, 0, 0, 0, 0});
  const Tensor h = filled({1, 1, 1}, 0.0F);
  const Tensor c = filled({1, 1, 1}, 11.0F);
  Attributes attributes{activations({"Affine", "Affine", "Affine"})};
  const auto plain = call_op("LSTM", {x, w, w, b, {}, h, c}, attributes, 3);
  EXPECT_THAT(floats(plain[2]), ElementsAre(5 * 11 + 2 * 7));
  EXPECT_THAT(floats(plain[1]), ElementsAre(3 * 69));
  // i and f look at the old c, o at the new one.
  const Tensor p = Tensor::from<float>({1, 3}, {1, 1, 1});
  const auto peeping = call_op("LSTM", {x, w, w, b, {}, h, c, p}, attributes, 3);
  const float next = (5 + 11) * 11 + (2 + 11) * 7;
  EXPECT_THAT(floats(peeping[2]), ElementsAre(next));
  EXPECT_THAT(floats(peeping[1]), ElementsAre((3 + next) * next));
  attributes.set({"input_forget", 1});
  const auto coupled = call_op("LSTM", {x, w, w, b, {}, h, c}, attributes, 3);
  EXPECT_THAT(floats(coupled[2]), ElementsAre((1 - 2) * 11 + 2 * 7));
}

TEST(Lstm, ClipLeavesTheCellAlone) {
  const Tensor x = filled({1, 1, 1}, 0.0F);
  const Tensor w = filled({1, 4, 1}, 0.0F);
  const Tensor b = filled({1, 8}, 5.0F);
  const auto result = call_op("LSTM", {x, w, w, b, {}, {}, filled({1, 1, 1}, 4.0F)},
                              {activations({"Affine", "Affine", "Affine"}), {"clip", 1.0F}}, 3);
  EXPECT_THAT(floats(result[2]), ElementsAre(1 * 4 + 1));
  EXPECT_THAT(floats(result[1]), ElementsAre(5));
}

// Gates z, r, h; z = 0.5 everywhere, so h' = (candidate + h) / 2.
TEST(Gru, ResetBeforeAndAfterTheProduct) {
  const Tensor x = filled({1, 1, 1}, 0.0F);
  const Tensor w = filled({1, 3, 1}, 0.0F);
  const Tensor r = Tensor::from<float>({1, 3, 1}, {0, 0, 3});
  const Tensor b = Tensor::from<float>({1, 6}, {0.5F, 0.25F, 1, 0, 0, 10});
  const Tensor h = filled({1, 1, 1}, 4.0F);
  Attributes attributes{activations({"Affine", "Affine"})};
  EXPECT_THAT(floats(call_op("GRU", {x, w, r, b, {}, h}, attributes)[0]),
              ElementsAre(0.5F * (3 * (0.25F * 4) + 1 + 10) + 2));
  attributes.set({"linear_before_reset", 1});
  EXPECT_THAT(floats(call_op("GRU", {x, w, r, b, {}, h}, attributes)[0]),
              ElementsAre(0.5F * (0.25F * (3 * 4 + 10) + 1) + 2));
}

TEST(Rnn, ListedActivationsTakeTheirParametersInOrder) {
  const Tensor x = filled({1, 1, 1}, 2.0F);
  const Tensor w = filled({2, 1, 1}, 1.0F);
  const auto result = call_op("RNN", {x, w, w},
                              {{"direction", "bidirectional"},
                               activations({"Softsign", "LeakyRelu"}),
                               {"activation_alpha", AttributeValue(std::vector<float>{0.5F})}});
  EXPECT_THAT(floats(result[0]), ElementsAre(FloatNear(2.0F / 3, 1e-6F), 2));
  const auto negative = call_op("RNN", {filled({1, 1, 1}, -2.0F), w, w},
                                {{"direction", "bidirectional"},
                                 activations({"Softsign", "LeakyRelu"}),
                                 {"activation_alpha", AttributeValue(std::vector<float>{0.5F})}});
  EXPECT_THAT(floats(negative[0]), ElementsAre(FloatNear(-2.0F / 3, 1e-6F), -1));
}

TEST(Rnn, OnlyTheLastStateAsked) {
  Graph graph;
  Builder builder(graph);
  const std::vector<Tensor> inputs{ramp({3, 1, 1}), filled({1, 1, 1}, 1.0F),
                                   filled({1, 1, 1}, 1.0F)};
  std::vector<Value*> values;
  for (const Tensor& input : inputs) values.push_back(builder.constant(input));
  const Node* const node = builder.node("RNN", "", values, std::vector<std::string>{"", "last"},
                                        {activations({"Affine"})});
  EXPECT_THAT(floats(evaluate(*node, inputs)[1]), ElementsAre(6));
}

TEST(Recurrent, Refusals) {
  const Tensor x = ramp({3, 1, 2});
  const Tensor w = filled({1, 4, 2}, 0.0F);
  const Tensor r = filled({1, 4, 4}, 0.0F);
  EXPECT_NO_THROW(call_op("RNN", {x, w, r}));
  const Tensor narrow = filled({1, 4, 3}, 0.0F);
  EXPECT_THROW(call_op("RNN", {x, narrow, r}), Error);
  EXPECT_THROW(call_op("RNN", {x, w, narrow}), Error);
  EXPECT_THROW(call_op("LSTM", {x, w, r}), Error);
  EXPECT_THROW(call_op("RNN", {x, w, r}, {{"direction", "sideways"}}), Error);
  EXPECT_THROW(call_op("RNN", {x, w, r}, {{"direction", "bidirectional"}}), Error);
  EXPECT_THROW(call_op("RNN", {x, w, r}, {{"layout", 2}}), Error);
  EXPECT_THROW(call_op("RNN", {x, w, r}, {{"hidden_size", 5}}), Error);
  EXPECT_THROW(call_op("RNN", {x, w, r}, {activations({"Maxout"})}), Error);
  EXPECT_THROW(call_op("RNN", {x, w, r}, {activations({"Tanh", "Tanh"})}), Error);
  EXPECT_THROW(call_op("RNN", {x, w, r}, {{"activations", "Tanh"}}), Error);
  EXPECT_THROW(call_op("RNN", {x, w, r}, {{"clip", -1.0F}}), Error);
}

/// An input without elements may have as many steps as its file says.
TEST(Recurrent, StepsOfNothing) {
  const std::int64_t many = std::int64_t{1} << 62;
  const Tensor r = filled({1, 4, 4}, 0.0F);
  const auto run = [&](const Shape& x, const Tensor& w) {
    return call_op("RNN", {Tensor::zeros(DType::f32, x), w, r}, {}, 2);
  };
  EXPECT_EQ(run({many / 4, 0, 2}, filled({1, 4, 2}, 0.0F))[0].shape(), Shape({many / 4, 1, 0, 4}));
  // States of 2^62 steps take 2^64 elements, which is 0 in 64 bits.
  const testing::OneNode endless(
      "RNN", "", {Tensor::zeros(DType::f32, {many, 1, 0}), filled({1, 4, 0}, 0.0F), r}, 2, {});
  EXPECT_THROW(prepare_all_kernels(*endless.node, cpu()), Error);
}

}  // namespace
}  // namespace graft
