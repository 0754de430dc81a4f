#include "autograd/joint_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/backward.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

struct Result {
  float loss;
  std::vector<float> gradient;
};

/// The loss and its gradient with respect to the prediction.
Result evaluate_loss(const Loss& loss, const Tensor& prediction, const Tensor& target) {
  auto graph = std::make_unique<Graph>();
  Builder builder(*graph);
  const auto input = [&](std::string_view name, const Tensor& tensor) {
    return builder.expr(graph->add_input(name, {tensor.dtype(), SymShape(tensor.shape())}));
  };
  const Expr p = input("prediction", prediction);
  const Expr value = add_loss(loss, p, input("target", target));
  const auto gradients = autograd::backward(*graph, {{value.value()}}, {p.value()});
  graph->set_outputs({value.value(), gradients[0]});
  passes::settle(*graph);
  Plan plan(std::move(graph));
  plan.run(std::vector<Tensor>{prediction, target});
  const auto g = plan.output(1).values<const float>();
  return {plan.output(0).values<const float>()[0], {g.begin(), g.end()}};
}

void expect_result(const Result& found, float loss, const std::vector<float>& gradient) {
  EXPECT_NEAR(found.loss, loss, 1e-6F);
  EXPECT_THAT(found.gradient, Pointwise(FloatNear(1e-6F), gradient));
}

const float kLog2 = std::log(2.0F);

/// Two equal logits: log 2; softmax is (1/2,1/2).
TEST(Loss, CrossEntropy) {
  const Tensor logits = Tensor::from<float>({2, 2}, {3, 3, 0, 0});
  const Tensor target = Tensor::from<std::int64_t>({2}, {0, 1});
  expect_result(evaluate_loss(cross_entropy(), logits, target), kLog2,
                {-0.25F, 0.25F, 0.25F, -0.25F});
}

/// Smoothing s: (1-s) of the target on its class, s spread over both; softmax minus that.
/// logits (log 3, 0): softmax (3/4, 1/4); loss = -(0.9 log 3/4 + 0.1 log 1/4) for s = 0.2.
TEST(Loss, CrossEntropyWithLabelSmoothing) {
  const Tensor logits = Tensor::from<float>({1, 2}, {std::log(3.0F), 0});
  const Tensor target = Tensor::from<std::int64_t>({1}, {0});
  expect_result(evaluate_loss(cross_entropy(0.2F), logits, target),
                -(0.9F * std::log(0.75F) + 0.1F * std::log(0.25F)), {0.75F - 0.9F, 0.25F - 0.1F});
}

TEST(Loss, TokenCrossEntropyIsTheMeanOverTokens) {
  const Tensor logits = Tensor::from<float>({1, 2, 2}, {3, 3, std::log(3.0F), 0});
  const Tensor target = Tensor::from<std::int64_t>({1, 2}, {0, 1});
  expect_result(evaluate_loss(token_cross_entropy(), logits, target), (kLog2 - std::log(0.25F)) / 2,
                {-0.25F, 0.25F, 0.375F, -0.375F});
}

TEST(Loss, NegativeLogLikelihood) {
  const Tensor scores = Tensor::from<float>({2, 2}, {-1, -2, -3, -4});
  const Tensor target = Tensor::from<std::int64_t>({2}, {0, 1});
  expect_result(evaluate_loss(nll(), scores, target), 2.5F, {-0.5F, 0, 0, -0.5F});
}

TEST(Loss, ElementByElement) {
  const Tensor prediction = Tensor::from<float>({2, 1}, {3, 0.5F});
  const Tensor target = Tensor::from<float>({2, 1}, {1, 1});
  expect_result(evaluate_loss(mse(), prediction, target), (4 + 0.25F) / 2, {2, -0.5F});
  expect_result(evaluate_loss(l1(), prediction, target), (2 + 0.5F) / 2, {0.5F, -0.5F});
  // Huber: delta (|d| - delta/2) for d = 2, d^2/2 for d = -1/2.
  expect_result(evaluate_loss(huber(), prediction, target), (1.5F + 0.125F) / 2, {0.5F, -0.25F});
  expect_result(evaluate_loss(huber(2.5F), prediction, target), (2 + 0.125F) / 2, {1, -0.25F});
}

TEST(Loss, ATargetWithoutTheLastAxisFits) {
  const Tensor prediction = Tensor::from<float>({2, 1}, {3, 0.5F});
  expect_result(evaluate_loss(mse(), prediction, Tensor::from<float>({2}, {1, 1})), 2.125F,
                {2, -0.5F});
}

/// Large logits must not overflow: softplus(100) - 100 * 1 = 0, softplus(-100) - 0 = 0.
TEST(Loss, BinaryCrossEntropyWithLogits) {
  const Tensor logits = Tensor::from<float>({4}, {0, 100, -100, 0});
  const Tensor target = Tensor::from<float>({4}, {1, 1, 0, 0});
  expect_result(evaluate_loss(bce_with_logits(), logits, target), kLog2 / 2,
                {-0.125F, 0, 0, 0.125F});
}

/// Two steps, classes blank and a, each 1/2: "a" is spelled by aa, a_, _a, of probability 3/4. In
/// each step a stands in two of these three, the blank in one.
TEST(Loss, Ctc) {
  const float half = std::log(0.5F);
  const Tensor scores = Tensor::from<float>({2, 1, 2}, {half, half, half, half});
  const Tensor target = Tensor::from<std::int64_t>({1, 1}, {1});
  expect_result(evaluate_loss(ctc(), scores, target), -std::log(0.75F),
                {-1.0F / 3, -2.0F / 3, -1.0F / 3, -2.0F / 3});
  // Class 1 as the blank: the same with the classes exchanged.
  expect_result(evaluate_loss(ctc(1), scores, Tensor::from<std::int64_t>({1, 1}, {0})),
                -std::log(0.75F), {-2.0F / 3, -1.0F / 3, -2.0F / 3, -1.0F / 3});
}

/// A target of two labels counts half; padding is not part of it, and an empty one is spelled by
/// blanks alone.
TEST(Loss, CtcDividesByTheLengthOfTheTarget) {
  const float third = std::log(1.0F / 3);
  const Tensor scores = Tensor::from<float>({2, 2, 3}, std::vector<float>(std::size_t{12}, third));
  const Tensor target = Tensor::from<std::int64_t>({2, 2}, {1, 2, -1, -1});
  const float spelled = std::log(9.0F);  // one of nine paths, for either
  EXPECT_NEAR(evaluate_loss(ctc(), scores, target).loss, (spelled / 2 + spelled) / 2, 1e-6F);
}

/// aa needs a blank between: three steps.
TEST(Loss, CtcOfATargetThatDoesNotFit) {
  const Tensor scores = Tensor::zeros(DType::f32, {2, 1, 2});
  const Tensor target = Tensor::from<std::int64_t>({1, 2}, {1, 1});
  EXPECT_TRUE(std::isinf(evaluate_loss(ctc(), scores, target).loss));
  expect_result(evaluate_loss(ctc(0, true), scores, target), 0.0F, {0, 0, 0, 0});
}

TEST(Loss, CtcTargetsMayEndEarlyButNotLeaveTheClasses) {
  EXPECT_NO_THROW(check_class_targets(ctc(), Tensor::from<std::int64_t>({1, 2}, {1, -1}), 2));
  EXPECT_THROW(check_class_targets(ctc(), Tensor::from<std::int64_t>({1, 2}, {1, 2}), 2), Error);
}

TEST(Loss, WhatDoesNotFitIsNamed) {
  const Tensor logits = Tensor::zeros(DType::f32, {4, 3});
  const auto fails = [](const Loss& loss, const Tensor& prediction, const Tensor& target) {
    return std::string(error_of([&] { evaluate_loss(loss, prediction, target); }).what());
  };
  EXPECT_THAT(fails(cross_entropy(), logits, Tensor::zeros(DType::i64, {5})),
              HasSubstr("cross_entropy: the prediction is f32[4,3], the target i64[5], wanted a "
                        "target of shape [4]"));
  EXPECT_THAT(fails(cross_entropy(), logits, Tensor::zeros(DType::f32, {4})),
              HasSubstr("wanted class indices (i64)"));
  EXPECT_THAT(fails(mse(), logits, Tensor::zeros(DType::i64, {4, 3})), HasSubstr("wanted floats"));
  EXPECT_THAT(fails(token_cross_entropy(), logits, Tensor::zeros(DType::i64, {4})),
              HasSubstr("wanted [B,T,C]"));
  EXPECT_THAT(fails(ctc(), Tensor::zeros(DType::f32, {4, 2, 3}), Tensor::zeros(DType::i64, {3, 2})),
              HasSubstr("wanted a target of shape [2,2]"));
  EXPECT_THAT(std::string(error_of([] { loss_from_name("hinge"); }).what()),
              HasSubstr("unknown loss 'hinge'; valid: cross_entropy, token_cross_entropy, nll"));
}

/// What PyTorch gets (torch.nn.functional 2.x), on the same numbers.
class PyTorchs : public testing::Test {
 protected:
  const Tensor logits_ = Tensor::from<float>({3, 3}, {1, 2, 0, 0.5F, -1, 3, 2, 2, -2});
  const Tensor masks_ = Tensor::from<float>({3, 3}, {1, 0, 1, 0, 0, 1, 1, 1, 0});
};

TEST_F(PyTorchs, CrossEntropyWithWeightsSmoothingAndAnIgnoredClass) {
  const Loss loss =
      loss_from_spec("cross_entropy:ignore_index=255:label_smoothing=0.2:weights=1,2,3");
  const Tensor target = Tensor::from<std::int64_t>({3}, {2, 255, 0});
  check_class_targets(loss, target, 3);
  EXPECT_EQ(count_judged(loss, target), 2);
  expect_result(
      evaluate_loss(loss, logits_, target), 2.0126698F,
      {0.1546433F, 0.4323354F, -0.5869786F, 0, 0, 0, -0.0680279F, 0.1153055F, -0.0472776F});
  EXPECT_THAT(error_of([&] { check_class_targets(cross_entropy(), target, 3); }).what(),
              HasSubstr("class index 255"));
  EXPECT_THAT(error_of([&] {
                evaluate_loss(loss_from_spec("cross_entropy:weights=1,2"), logits_, target);
              }).what(),
              HasSubstr("2 class weights for 3 classes"));
}

TEST_F(PyTorchs, SumsAndWeightsOfPositives) {
  expect_result(evaluate_loss(loss_from_spec("cross_entropy:reduction=sum"), logits_,
                              Tensor::from<std::int64_t>({3}, {2, 1, 0})),
                7.2055435F,
                {0.2447285F, 0.665241F, -0.9099694F, 0.0745956F, -0.9833555F, 0.9087599F,
                 -0.5045373F, 0.4954627F, 0.0090747F});
  expect_result(evaluate_loss(loss_from_spec("bce_with_logits:pos_weight=3"), logits_, masks_),
                0.8297502F,
                {-0.0896471F, 0.0978663F, -0.1666667F, 0.0691622F, 0.0298824F, -0.0158086F,
                 -0.0397343F, -0.0397343F, 0.0132448F});
  expect_result(evaluate_loss(loss_from_spec("bce_with_logits:pos_weight=3,1,0.5:reduction=sum"),
                              logits_, masks_),
                5.3595595F,
                {-0.8068242F, 0.880797F, -0.25F, 0.6224594F, 0.2689414F, -0.0237129F, -0.3576088F,
                 -0.119203F, 0.1192029F});
}

TEST_F(PyTorchs, FocalDiceAndDistillation) {
  expect_result(evaluate_loss(focal(), logits_, masks_), 0.1765421F,
                {-0.0014606F, 0.0897262F, -0.0082857F, 0.043846F, 0.0043818F, -8.7e-06F,
                 -0.0001353F, -0.0001353F, 0.0004059F});
  expect_result(evaluate_loss(dice(), logits_, masks_), 0.2134099F,
                {-0.0169582F, 0.00463689F, -0.0215631F, 0.0154014F, 0.0128853F, -0.00487432F,
                 -0.0076959F, -0.0076959F, 0.00664515F});
  const Tensor teacher = Tensor::from<float>({3, 3}, {0, 1, 2, 1, 1, 1, 3, 0, -1});
  expect_result(evaluate_loss(kl(2.0F), logits_, teacher), 1.069712F,
                {0.0805814F, 0.132856F, -0.213438F, -0.087887F, -0.158767F, 0.246654F, -0.178543F,
                 0.202706F, -0.0241631F});
}

/// Triplets are mined outside and go through torch.nn.functional.triplet_margin_loss. The last
/// sample is alone with its label.
TEST_F(PyTorchs, TripletOfTheHardestInTheBatch) {
  const Tensor embeddings =
      Tensor::from<float>({5, 3}, {1, 2, 0, 0.5F, -1, 3, 2, 2, -2, 0, 1, 1, -1, 0, 2});
  const Tensor labels = Tensor::from<std::int64_t>({5}, {7, -3, 7, -3, 5});
  const std::vector<float> gradient{-2.0491276F, -1.1547005F, 2.9435549F,  -0.3794518F, -0.9075506F,
                                    0.9075496F,  0.3599044F,  -0.2672615F, -0.9870709F, 1.341068F,
                                    2.8145833F,  -3.3491051F, 0.7276071F,  -0.4850706F, 0.4850716F};
  const auto expect = [&](const char* spec, float loss, float scale) {
    const Result found = evaluate_loss(loss_from_spec(spec), embeddings, labels);
    EXPECT_NEAR(found.loss, loss, 2e-6F) << spec;
    std::vector<float> scaled = gradient;
    for (float& one : scaled) one *= scale;
    EXPECT_THAT(found.gradient, Pointwise(FloatNear(2e-6F), scaled)) << spec;
  };
  expect("triplet:margin=2:reduction=sum", 8.9493866F, 1.0F);
  expect("triplet:margin=2", 2.2373466F, 0.25F);
  const Tensor alone = Tensor::from<std::int64_t>({5}, {0, 1, 2, 3, 4});
  EXPECT_EQ(evaluate_loss(triplet(), embeddings, alone).loss, 0.0F);
  EXPECT_EQ(loss_from_name("triplet").margin, triplet().margin);
  EXPECT_THAT(error_of([&] { evaluate_loss(triplet(), embeddings, embeddings); }).what(),
              HasSubstr("triplet: the prediction is f32[5,3], the target f32[5,3], wanted "
                        "embeddings [N,D] and labels i64[N]"));
}

/// The second cosine lies past pi - 0.5, where the line begins.
TEST_F(PyTorchs, ArcfaceOfCosines) {
  const Tensor cosines =
      Tensor::from<float>({3, 3}, {0.9F, -0.2F, 0.1F, -0.95F, 0.3F, 0.5F, 0.2F, 0.7F, -0.6F});
  const Tensor target = Tensor::from<std::int64_t>({3}, {0, 0, 1});
  expect_result(evaluate_loss(arcface(0.5F, 4.0F), cosines, target), 2.6272411F,
                {-0.3977656F, 0.0493035F, 0.1636933F, -1.3322666F, 0.4130367F, 0.9192299F,
                 0.5616061F, -0.7876195F, 0.0228923F});
  expect_result(
      evaluate_loss(loss_from_spec("arcface:margin=0.3:scale=4:reduction=sum"), cosines, target),
      6.7871280F,
      {-0.5913426F, 0.0874355F, 0.2902962F, -0.2245572F, 1.2379835F, 2.7551827F, 1.0405885F,
       -1.3483462F, 0.0424167F});
  EXPECT_TRUE(has_class_targets(arcface()));
  EXPECT_EQ(loss_from_name("arcface").margin, arcface().margin);
  const Tensor edge = Tensor::from<float>({1, 2}, {1, -1});
  const Result found = evaluate_loss(arcface(), edge, Tensor::from<std::int64_t>({1}, {0}));
  EXPECT_TRUE(std::isfinite(found.gradient[0])) << "where the root of 1 - cos^2 has no slope";
}

TEST(LossSpec, NamesOutputsAndLossesOfTheModel) {
  const Loss sum = loss_from_spec("y=cross_entropy:weights=1,2:ignore_index=7+z=0.5*huber:delta=2");
  EXPECT_EQ(sum.name, "y=cross_entropy+z=0.5*huber");
  EXPECT_EQ(sum.outputs, (std::vector<std::string>{"y", "z"}));
  EXPECT_EQ(sum.part_weights, (std::vector<float>{1.0F, 0.5F}));
  EXPECT_EQ(sum.parts[0].ignore_index, 7);
  EXPECT_EQ(sum.parts[1].delta, 2.0F);
  EXPECT_TRUE(has_class_targets(sum)) << "as the first";
  EXPECT_EQ(count_judged(sum, Tensor::from<std::int64_t>({3}, {0, 7, 1})), 2);
  const Loss inside = loss_from_spec("graph:total:0");
  EXPECT_TRUE(is_in_graph(inside));
  EXPECT_EQ(inside.outputs.front(), "total:0");
  EXPECT_FALSE(has_class_targets(inside));
  const auto error = [](const char* spec) {
    return std::string(error_of([&] { loss_from_spec(spec); }).what());
  };
  EXPECT_THAT(error("y=mse+z"), HasSubstr("loss 'z', wanted OUTPUT=LOSS"));
  EXPECT_THAT(error("y=much*mse"), HasSubstr("loss y: weight='much', wanted a finite number"));
  EXPECT_THAT(error("y=hinge"), HasSubstr("unknown loss 'hinge'"));
  EXPECT_THAT(error("graph:"), HasSubstr("unknown loss 'graph'"));
  EXPECT_THAT(std::string(error_of([&] {
                            sum_of({{"y", sum}});
                          }).what()),
              HasSubstr("names its own outputs"));
}

TEST(LossSpec, SaysWhatALossTakes) {
  const auto fails = [](const char* spec) {
    return std::string(error_of([&] { loss_from_spec(spec); }).what());
  };
  EXPECT_EQ(loss_from_spec("huber:delta=2").delta, 2.0F);
  EXPECT_TRUE(loss_from_spec("ctc:blank=3:zero_infinity=1").zero_infinity);
  EXPECT_THAT(fails("mse:delta=2"), HasSubstr("no setting 'delta'; wanted mse[:reduction="));
  EXPECT_THAT(fails("huber:delta"), HasSubstr("wanted huber[:delta=NUMBER][:reduction=mean|sum]"));
  EXPECT_THAT(fails("huber:delta=0"), HasSubstr("delta='0', wanted a number above 0"));
  EXPECT_THAT(fails("cross_entropy:label_smoothing=nan"), HasSubstr("wanted a number from 0"));
  EXPECT_THAT(fails("cross_entropy:weights=1,,2"), HasSubstr("wanted numbers of at least 0"));
  EXPECT_THAT(fails("cross_entropy:ignore_index=1.5"), HasSubstr("wanted a whole number"));
  EXPECT_THAT(fails("nll:reduction=none"), HasSubstr("wanted mean or sum"));
  EXPECT_THAT(fails("focal:alpha=1.000005"), HasSubstr("wanted a number from 0 to 1"));
  EXPECT_THAT(fails("ctc:zero_infinity=7"), HasSubstr("wanted 0 or 1"));
  EXPECT_THAT(fails("arcface:margin=3.2"), HasSubstr("wanted an angle from 0 to below pi"));
  EXPECT_THAT(fails("triplet:margin=-1"), HasSubstr("wanted a number of at least 0"));
}

TEST(Loss, EveryNameIsALoss) {
  EXPECT_EQ(loss_names().size(), 13U);
  for (const std::string& name : loss_names()) EXPECT_EQ(loss_from_name(name).name, name);
}

// The loss of docs/losses.md, word for word.
/// Logits [N,C,H,W] against classes i64 [N,H,W].
Loss segmentation(double dice_weight) {
  const auto formula = [=](const Expr& logits, const Expr& target) {
    const Expr entropy = call("SoftmaxCrossEntropyLoss", {logits, target},
                              {{"ignore_index", 255}, {"reduction", "mean"}});
    const Shape shape = target.shape();
    const Expr p = call("Softmax", {logits}, {{"axis", 1}});
    const Expr second = constant_ints(p.builder(), {1});
    const Expr p1 = reshape(call("Gather", {p, second}, {{"axis", 1}}), shape);
    const Expr one = cast(equal(target, constant_like(target, 1.0)), p.dtype());
    const Expr counts = 1.0 - cast(equal(target, constant_like(target, 255.0)), p.dtype());
    const auto sum = [](const Expr& x) { return reduce_sum(x, {}, false); };
    const Expr overlap = sum(p1 * one * counts) * 2.0 + 1.0;
    return entropy + (1.0 - overlap / (sum(p1 * counts) + sum(one) + 1.0)) * dice_weight;
  };
  return custom_loss("segmentation", formula, Targets::any);
}

TEST(CustomLoss, OfTheDocumentationIgnoresWhatItSays) {
  const Tensor target = Tensor::from<std::int64_t>({1, 1, 3}, {1, 255, 0});
  const Tensor logits = Tensor::from<float>({1, 2, 1, 3}, {0, 5, 0, 0, 7, 0});
  const Result found = evaluate_loss(segmentation(0.5), logits, target);
  // entropy log 2; p1 = 1/2 twice: overlap 2 * 1/2 + 1 = 2, sums 1 + 1 + 1 = 3.
  EXPECT_NEAR(found.loss, kLog2 + 0.5F / 3.0F, 1e-6F);
  EXPECT_EQ(found.gradient[1], 0.0F);
  EXPECT_EQ(found.gradient[4], 0.0F);
  EXPECT_LT(found.gradient[3], 0.0F);
}

/// Mean of |p - t| / t: (1/2 + 1/4) / 2; d/dp = sign / (2t).
TEST(CustomLoss, IsDifferentiatedAsItIsWritten) {
  const Loss relative = custom_loss(
      "relative",
      [](const Expr& p, const Expr& t) { return reduce_mean(call("Abs", {p - t}) / t, {}, false); },
      Targets::numbers);
  expect_result(evaluate_loss(relative, Tensor::from<float>({2, 1}, {3, 3}),
                              Tensor::from<float>({2}, {2, 4})),
                0.375F, {0.25F, -0.125F});
  EXPECT_FALSE(has_class_targets(relative));
  EXPECT_EQ(class_count(relative, {2, 1}), 0);
}

TEST(CustomLoss, OfClassesChecksThemAndHasAnAccuracy) {
  const auto formula = [](const Expr& p, const Expr& t) {
    return call("NegativeLogLikelihoodLoss", {p, t}, {{"reduction", "mean"}});
  };
  const Loss own = custom_loss("own", formula, Targets::classes);
  const Tensor p = Tensor::from<float>({2, 2}, {-1, -2, -3, -4});
  const Tensor t = Tensor::from<std::int64_t>({2}, {0, 1});
  EXPECT_EQ(evaluate_loss(own, p, t).loss, evaluate_loss(nll(), p, t).loss);
  EXPECT_TRUE(has_class_targets(own));
  EXPECT_EQ(class_axis(own, {2, 2}), 1);
  EXPECT_THROW(check_class_targets(own, Tensor::from<std::int64_t>({1}, {2}), 2), Error);
  const Error shape = error_of([&] { evaluate_loss(own, p, Tensor::zeros(DType::i64, {3})); });
  EXPECT_THAT(shape.what(), HasSubstr("own: the prediction is f32[2,2], the target i64[3]"));
}

/// Without a word on targets the formula gets them as they are.
TEST(CustomLoss, TakesAnyTarget) {
  const Loss own = custom_loss("own", [](const Expr& p, const Expr& t) {
    EXPECT_EQ(text(t.value()->type()), "i32[3]");
    return reduce_sum(p * cast(reduce_sum(t, {}, false), p.dtype()), {}, false);
  });
  expect_result(evaluate_loss(own, Tensor::from<float>({2}, {1, 2}),
                              Tensor::from<std::int32_t>({3}, {1, 2, 3})),
                18.0F, {6.0F, 6.0F});
}

TEST(CustomLoss, MustBeAScalarOfThePredictionsType) {
  const Tensor p = Tensor::from<float>({2, 1}, {3, 3});
  const auto error = [&](LossFormula formula) {
    return error_of([&] { evaluate_loss(custom_loss("own", std::move(formula)), p, p); });
  };
  const Error shape = error([](const Expr& y, const Expr&) { return y; });
  EXPECT_EQ(shape.kind(), ErrorKind::shape);
  EXPECT_THAT(shape.what(),
              HasSubstr("own: the formula gives f32[2,1], wanted f32[]: take a mean"));
  const Error type =
      error([](const Expr& y, const Expr&) { return cast(reduce_sum(y, {}, false), DType::f64); });
  EXPECT_EQ(type.kind(), ErrorKind::type);
  EXPECT_EQ(error([](const Expr&, const Expr&) { return Expr(); }).kind(), ErrorKind::argument);
}

}  // namespace
}  // namespace graft
