#include <gmock/gmock.h>

#include <cmath>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using testing::floats;

Tensor vector(std::initializer_list<float> values) {
  return Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values);
}
Attribute number(const char* name, float value) {
  return {name, AttributeValue(value)};
}

/// Two samples of two channels: channel 0 has mean 2 and population variance 1, channel 1 mean 30
/// and variance 100.
Tensor two_channels() {
  return Tensor::from<float>({2, 2}, {1, 20, 3, 40});
}

TEST(BatchNorm, UsesTheGivenStatistics) {
  const auto y =
      call_op("BatchNormalization",
              {two_channels(), vector({2, 1}), vector({0.5F, 0}), vector({1, 20}), vector({3, 99})},
              {number("epsilon", 1)});
  EXPECT_THAT(floats(y[0]), ElementsAre(0.5F, 0, 2.5F, 2));
}

TEST(BatchNorm, TrainingMixesInThePopulationVariance) {
  const auto y =
      call_op("BatchNormalization",
              {two_channels(), vector({1, 1}), vector({0, 0}), vector({10, 10}), vector({5, 5})},
              {number("epsilon", 0), number("momentum", 0.75F), {"training_mode", 1}}, 3);
  EXPECT_THAT(floats(y[0]), ElementsAre(-1, -1, 1, 1));
  EXPECT_THAT(floats(y[1]), ElementsAre(8, 15));
  EXPECT_THAT(floats(y[2]), ElementsAre(4, 28.75F));
}

/// What mixed precision runs: x, y and their gradients stored in bf16, all else f32. Equal to f32
/// from the same numbers, but for the rounding of the results.
TEST(BatchNormTraining, TakesShortImagesWithF32Parameters) {
  constexpr std::int64_t kChannels = 21;  // vectors of 16 and 4, and one left over
  const auto numbers = [](double first, double step) {
    std::vector<float> values;
    for (int i = 0; i < 6 * kChannels; ++i) {
      values.push_back(static_cast<float>(std::sin(first + step * i)));
    }
    return Tensor::from<float>({6, kChannels}, values).cast(DType::bf16);
  };
  const Tensor x = numbers(0.3, 0.7);
  const Tensor dy = numbers(1.1, 1.3);
  const Tensor scale = Tensor::full(DType::f32, {kChannels}, 1.5);
  const Tensor bias = Tensor::full(DType::f32, {kChannels}, 0.25);
  const Attributes relu{number("lower", 0), {"strict", 1}};
  const auto forward = [&](DType dtype) {
    return call_internal_op("BatchNormTraining", {x.cast(dtype), scale, bias, bias, scale}, relu,
                            5);
  };
  const auto is = forward(DType::bf16);
  const auto wanted = forward(DType::f32);
  EXPECT_EQ(floats(is[0].cast(DType::f32)), floats(wanted[0].cast(DType::bf16).cast(DType::f32)));
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(floats(is[i]), floats(wanted[i])) << i;

  const auto backward = [&](DType dtype) {
    return call_internal_op("BatchNormGrad",
                            {x.cast(dtype), dy.cast(dtype), scale, wanted[1], wanted[2], bias},
                            relu, 3);
  };
  const auto gradients = backward(DType::bf16);
  const auto wanted_gradients = backward(DType::f32);
  EXPECT_EQ(floats(gradients[0].cast(DType::f32)),
            floats(wanted_gradients[0].cast(DType::bf16).cast(DType::f32)));
  for (const std::size_t i : {1U, 2U}) EXPECT_EQ(floats(gradients[i]), floats(wanted_gradients[i]));
}

TEST(BatchNormTraining, MixesInTheUnbiasedVariance) {
  const auto y = call_internal_op(
      "BatchNormTraining",
      {two_channels(), vector({1, 2}), vector({0, 7}), vector({10, 10}), vector({5, 5})},
      {number("epsilon", 0), number("momentum", 0.75F)}, 5);
  EXPECT_THAT(floats(y[0]), ElementsAre(-1, 5, 1, 9));
  EXPECT_THAT(floats(y[1]), ElementsAre(2, 30));
  EXPECT_THAT(floats(y[2]), ElementsAre(1, FloatEq(0.1F)));
  EXPECT_THAT(floats(y[3]), ElementsAre(8, 15));
  EXPECT_THAT(floats(y[4]), ElementsAre(4.25F, 53.75F));  // 0.75 * 5 + 0.25 * 2 * variance
}

TEST(BatchNormTraining, OneElementAChannelGivesFiniteStatistics) {
  const auto y = call_internal_op(
      "BatchNormTraining",
      {Tensor::from<float>({1, 1}, {4}), vector({1}), vector({3}), vector({0}), vector({1})},
      {number("momentum", 0.5F)}, 5);
  EXPECT_THAT(floats(y[0]), ElementsAre(3));
  EXPECT_THAT(floats(y[3]), ElementsAre(2));
  EXPECT_THAT(floats(y[4]), ElementsAre(0.5F));
}

TEST(BatchNormTraining, ALargeMeanCostsNoDigits) {
  const auto y = call_internal_op("BatchNormTraining",
                                  {Tensor::from<float>({1, 1, 2, 2}, {10001, 10002, 10003, 10004}),
                                   vector({1}), vector({0}), vector({0}), vector({0})},
                                  {number("epsilon", 0)}, 5);
  EXPECT_THAT(floats(y[2]), ElementsAre(FloatEq(static_cast<float>(1 / std::sqrt(1.25)))));
  EXPECT_THAT(floats(y[0])[0], FloatNear(static_cast<float>(-1.5 / std::sqrt(1.25)), 1e-6F));
}

TEST(BatchNormGrad, OfTwoElements) {
  // With two elements a channel, y is -1 and 1 whatever x is: dx is 0.
  const auto d = call_internal_op("BatchNormGrad",
                                  {two_channels(), Tensor::from<float>({2, 2}, {1, 2, 5, 6}),
                                   vector({3, 3}), vector({2, 30}), vector({1, 0.1F})},
                                  {}, 3);
  for (const float dx : floats(d[0])) EXPECT_NEAR(dx, 0, 1e-6F);
  EXPECT_THAT(floats(d[1]), ElementsAre(4, FloatEq(4)));
  EXPECT_THAT(floats(d[2]), ElementsAre(6, 8));
}

TEST(BatchNorm, UpgradesSpatialZeroToBroadcasting) {
  // One mean and variance for each element of a sample.
  const Tensor x = Tensor::from<float>({2, 1, 2}, {1, 2, 3, 4});
  const auto each = [](float a, float b) { return Tensor::from<float>({1, 2}, {a, b}); };
  const Tensor y =
      call_old_op("BatchNormalization", 7, {x, each(1, 2), each(0, 1), each(1, 2), each(3, 8)},
                  {{"spatial", 0}, number("epsilon", 1)});
  const std::vector<float> found = floats(y);
  EXPECT_THAT(found, ElementsAre(0, 1, 1, FloatEq(7.0F / 3)));
}

TEST(BatchNorm, OldFormsWithoutExtraOutputsInfer) {
  const Tensor y = call_old_op(
      "BatchNormalization", 7,
      {two_channels(), vector({1, 1}), vector({0, 0}), vector({1, 20}), vector({4, 100})},
      {{"spatial", 1}, number("epsilon", 0)});
  EXPECT_THAT(floats(y), ElementsAre(0, 0, 1, 2));
}

/// Upgrades BatchNormalization of opset 9 with outputs Y, mean, var, saved_mean, saved_var.
std::vector<Tensor> call_opset_9(bool reads_saved) {
  Model model;
  model.set_opset("", 9);
  Graph& graph = model.graph();
  std::vector<Value*> inputs;
  for (const Tensor& tensor :
       {two_channels(), vector({1, 1}), vector({0, 0}), vector({10, 10}), vector({5, 5})}) {
    inputs.push_back(graph.add_initializer(graph.unique_name("x"), tensor));
  }
  Node* const node = graph.add_node("BatchNormalization", "", inputs, {"y", "m", "v", "sm", "sv"},
                                    {number("epsilon", 0), number("momentum", 0.75F)});
  for (int i = 0; i < (reads_saved ? 5 : 3); ++i) graph.add_output(node->output(i));
  passes::upgrade_opset(model);
  passes::infer_shapes(graph);
  passes::fold_constants(graph);
  std::vector<Tensor> results;
  for (const Value* output : graph.outputs()) results.push_back(output->initializer());
  return results;
}

TEST(BatchNorm, OldFormsWithExtraOutputsTrain) {
  const auto y = call_opset_9(false);
  EXPECT_THAT(floats(y[0]), ElementsAre(-1, -1, 1, 1));
  EXPECT_THAT(floats(y[1]), ElementsAre(8, 15));
  EXPECT_THAT(floats(y[2]), ElementsAre(4, 28.75F));
  EXPECT_EQ(kind_of([] { call_opset_9(true); }), ErrorKind::unsupported);
}

TEST(BatchNorm, ManySamplesWithoutElementsEnd) {
  const Shape samples{std::int64_t{1} << 60, 1, 0};
  const Tensor one = Tensor::full(DType::f32, {1}, 1.0);
  const Tensor x = Tensor::zeros(DType::f32, samples);
  EXPECT_EQ(call_op("BatchNormalization", {x, one, one, one, one})[0].shape(), samples);
}

TEST(BatchNorm, RefusesWhatDoesNotFit) {
  const auto call = [](const Tensor& scale, int outputs) {
    call_op("BatchNormalization",
            {two_channels(), scale, vector({0, 0}), vector({0, 0}), vector({1, 1})}, {}, outputs);
  };
  EXPECT_EQ(kind_of([&] { call(vector({1, 1, 1}), 1); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { call(Tensor::zeros(DType::f32, {1, 2}), 1); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { call(vector({1, 1}), 3); }), ErrorKind::model);
}

}  // namespace
}  // namespace graft
