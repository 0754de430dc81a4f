#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using testing::floats;

constexpr const char* kLoss = "SoftmaxCrossEntropyLoss";

// Probabilities (1/6, 2/6, 3/6) and (1/4, 1/4, 2/4).
Tensor scores() {
  return Tensor::from<float>({2, 3}, {0, std::log(2.0F), std::log(3.0F), 1, 1, 1 + std::log(2.0F)});
}
Tensor labels(std::initializer_list<std::int64_t> list) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(list.size())}, list);
}
Tensor weights() {
  return Tensor::from<float>({3}, {1, 2, 3});
}
const float kFirst = std::log(3.0F);   // label 1 of row 0: -log(2/6)
const float kSecond = std::log(4.0F);  // label 0 of row 1: -log(1/4)

TEST(CrossEntropy, Reductions) {
  const std::vector<Tensor> inputs{scores(), labels({1, 0})};
  EXPECT_THAT(floats(call_op(kLoss, inputs, {{"reduction", "none"}})[0]),
              ElementsAre(FloatEq(kFirst), FloatEq(kSecond)));
  EXPECT_THAT(floats(call_op(kLoss, inputs, {{"reduction", "sum"}})[0]),
              ElementsAre(FloatEq(kFirst + kSecond)));
  const std::vector<Tensor> mean = call_op(kLoss, inputs, {}, 2);
  EXPECT_EQ(mean[0].shape(), Shape());
  EXPECT_THAT(floats(mean[0]), ElementsAre(FloatEq((kFirst + kSecond) / 2)));
  EXPECT_THAT(floats(mean[1])[5], FloatEq(-std::log(2.0F)));
}

TEST(CrossEntropy, AWeightedMeanDividesByTheWeights) {
  const std::vector<Tensor> inputs{scores(), labels({1, 0}), weights()};
  EXPECT_THAT(floats(call_op(kLoss, inputs)[0]), ElementsAre(FloatEq((2 * kFirst + kSecond) / 3)));
}

TEST(CrossEntropy, IgnoredLabelsCountForNothing) {
  const std::vector<Tensor> inputs{scores(), labels({-100, 0})};
  EXPECT_THAT(floats(call_op(kLoss, inputs, {{"ignore_index", -100}})[0]),
              ElementsAre(FloatEq(kSecond)));
  const std::vector<Tensor> none{scores(), labels({1, 1})};
  EXPECT_TRUE(std::isnan(floats(call_op(kLoss, none, {{"ignore_index", 1}})[0])[0]));
}

TEST(CrossEntropy, ALabelOutOfRangeGivesNanAndReadsNothing) {
  for (const std::int64_t bad : {std::int64_t{3}, std::int64_t{-1}, std::int64_t{1} << 62}) {
    const std::vector<Tensor> inputs{scores(), labels({1, bad})};
    const std::vector<float> loss = floats(call_op(kLoss, inputs, {{"reduction", "none"}})[0]);
    EXPECT_THAT(loss[0], FloatEq(kFirst));
    EXPECT_TRUE(std::isnan(loss[1]));
    const std::vector<float> dx = floats(
        call_internal_op("CrossEntropyGrad", {Tensor::scalar(1.0F), scores(), labels({1, bad})},
                         {{"reduction", "sum"}})[0]);
    EXPECT_THAT(dx[0], FloatEq(1.0F / 6));
    EXPECT_TRUE(std::isnan(dx[3]));
  }
}

TEST(CrossEntropy, GradientIsSoftmaxMinusTarget) {
  const Tensor one = Tensor::scalar(1.0F);
  EXPECT_THAT(floats(call_internal_op("CrossEntropyGrad", {one, scores(), labels({1, 0})})[0]),
              ElementsAre(FloatNear(1 / 12.0F, 1e-6F), FloatNear(-1 / 3.0F, 1e-6F),
                          FloatNear(1 / 4.0F, 1e-6F), FloatNear(-3 / 8.0F, 1e-6F),
                          FloatNear(1 / 8.0F, 1e-6F), FloatNear(1 / 4.0F, 1e-6F)));
  EXPECT_THAT(floats(call_internal_op("CrossEntropyGrad", {one, scores(), labels({7, 0})},
                                      {{"ignore_index", 7}, {"reduction", "sum"}})[0]),
              ElementsAre(0, 0, 0, FloatNear(-0.75F, 1e-6F), FloatNear(0.25F, 1e-6F),
                          FloatNear(0.5F, 1e-6F)));
}

/// 0.9 * hard + 0.1 / 3 * sum over classes of -log p (torch.nn.CrossEntropyLoss).
TEST(CrossEntropy, LabelSmoothing) {
  const float spread = std::log(6.0F) + std::log(3.0F) + std::log(2.0F);
  const Attributes attributes{{"label_smoothing", AttributeValue(0.1F)}};
  const Tensor row = Tensor::from<float>({1, 3}, {0, std::log(2.0F), std::log(3.0F)});
  EXPECT_THAT(floats(call_internal_op("CrossEntropy", {row, labels({1})}, attributes)[0]),
              ElementsAre(FloatEq(0.9F * kFirst + 0.1F / 3 * spread)));
  // With weights 1, 2, 3: (0.9 * 2 * hard + 0.1/3 * (1 log 6 + 2 log 3 + 3 log 2)) / 2.
  const float weighted = std::log(6.0F) + 2 * std::log(3.0F) + 3 * std::log(2.0F);
  EXPECT_THAT(
      floats(call_internal_op("CrossEntropy", {row, labels({1}), weights()}, attributes)[0]),
      ElementsAre(FloatEq((1.8F * kFirst + 0.1F / 3 * weighted) / 2)));
}

TEST(CrossEntropy, SpatialPositionsAreIndependent) {
  // [1,3,2]: position 0 has the scores of row 0, position 1 those of row 1.
  const std::vector<float> rows = floats(scores());
  const Tensor spatial =
      Tensor::from<float>({1, 3, 2}, {rows[0], rows[3], rows[1], rows[4], rows[2], rows[5]});
  const Tensor label = labels({1, 0}).reshaped({1, 2});
  const Tensor loss = call_op(kLoss, {spatial, label}, {{"reduction", "none"}})[0];
  EXPECT_EQ(loss.shape(), Shape({1, 2}));
  EXPECT_THAT(floats(loss), ElementsAre(FloatEq(kFirst), FloatEq(kSecond)));
}

TEST(NegativeLogLikelihood, PicksTheLabel) {
  const Tensor x = Tensor::from<float>({2, 3}, {-1, -2, -3, -4, -5, -6});
  EXPECT_THAT(floats(call_op("NegativeLogLikelihoodLoss", {x, labels({2, 0})})[0]),
              ElementsAre(3.5F));
  EXPECT_THAT(floats(call_op("NegativeLogLikelihoodLoss", {x, labels({2, 0}), weights()},
                             {{"reduction", "none"}})[0]),
              ElementsAre(9, 4));
  EXPECT_THAT(floats(call_internal_op("NegativeLogLikelihoodLossGrad",
                                      {Tensor::scalar(1.0F), x, labels({2, 0}), weights()})[0]),
              ElementsAre(0, 0, -0.75F, -0.25F, 0, 0));
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  EXPECT_THROW(call_op(kLoss, {scores(), labels({1})}), Error);
  EXPECT_THROW(call_op(kLoss, {scores(), labels({1, 0}).reshaped({2, 1})}), Error);
  EXPECT_THROW(call_op(kLoss, {scores(), scores()}), Error);
  EXPECT_THROW(call_op(kLoss, {scores(), labels({1, 0}), Tensor::from<float>({2}, {1, 1})}), Error);
  EXPECT_THROW(call_op(kLoss, {scores(), labels({1, 0})}, {{"reduction", "max"}}), Error);
  EXPECT_THROW(call_op(kLoss, {Tensor::zeros(DType::f32, {2, 0}), labels({1, 0})}), Error);
  EXPECT_THROW(call_op(kLoss, {Tensor::scalar(1.0F), labels({1, 0})}), Error);
}

/// A class masked by -infinity, in the ops that other runtimes get.
TEST(CrossEntropy, AMaskedClassCountsNothingInOpsOfOnnx) {
  const float none = -std::numeric_limits<float>::infinity();
  const Tensor masked = Tensor::from<float>({1, 3}, {0, 0, none});
  testing::OneNode one("CrossEntropy", kInternalDomain, {masked, labels({0})}, 2, {});
  one.graph.set_outputs({one.node->output()});
  passes::lower(one.graph);
  passes::infer_shapes(one.graph);
  passes::fold_constants(one.graph);
  EXPECT_THAT(floats(one.graph.outputs().front()->initializer()),
              ElementsAre(FloatEq(std::log(2.0F))));
}

}  // namespace
}  // namespace graft
