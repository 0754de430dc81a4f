#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "core/layers/init.h"
#include "core/layers/layer_context.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"
#include "tests/core/layers/small_models.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What layers compute, on numbers by hand.

TEST(Linear, MultipliesByTheTransposedWeight) {
  Model model = model_of({Dim("N"), 3}, {Linear{.name = "fc", .out = 2}});
  set_weights(model, "fc.weight", {1, 2, 3, 4, 5, 6});  // [2,3]
  set_weights(model, "fc.bias", {10, 20});
  EXPECT_THAT(run(model, {1, 3}, {1, 0, 2}), ElementsAre(17, 36));
}

TEST(Linear, TakesTheLastDimOfASequence) {
  Model model = model_of({Dim("N"), 2, 3}, {Linear{.name = "fc", .out = 1}});
  set_weights(model, "fc.weight", {1, 2, 3});  // [3,1]
  set_weights(model, "fc.bias", {10});
  EXPECT_EQ(model.graph().outputs()[0]->type(), (ValueType{DType::f32, SymShape{Dim("N"), 2, 1}}));
  EXPECT_THAT(run(model, {1, 2, 3}, {1, 0, 2, 0, 1, 0}), ElementsAre(17, 12));
}

TEST(Linear, WithoutBiasHasOneParameter) {
  EXPECT_EQ(print(model_of({Dim("N"), 3}, {Linear{.out = 2, .bias = false}}).graph()),
            R"(net(x: f32[N,3]) -> (linear1: f32[N,2])
  linear1.weight: f32[2,3] = initializer
  linear1: f32[N,2] = Gemm(x, linear1.weight) {transB = 1}
)");
  // Gemm must have three inputs before opset 11.
  EXPECT_EQ(print(model_of({Dim("N"), 3}, {Linear{.out = 2, .bias = false}}, 10).graph()),
            R"(net(x: f32[N,3]) -> (linear1: f32[N,2])
  linear1.weight: f32[3,2] = initializer
  linear1: f32[N,2] = MatMul(x, linear1.weight)
)");
}

TEST(Conv, PadsStridesAndGroups) {
  Model model = model_of({Dim("N"), 2, 3, 3}, {Conv{.name = "c",
                                                    .out = 2,
                                                    .kernel = {1, 3},
                                                    .stride = {2},
                                                    .padding = {0, 1},
                                                    .groups = 2,
                                                    .bias = false}});
  const Value* const weight = model.graph().find("c.weight");
  EXPECT_EQ(weight->known_shape(), (Shape{2, 1, 1, 3}));
  EXPECT_EQ(model.graph().outputs()[0]->shape(), (SymShape{Dim("N"), 2, 2, 2}));
  set_weights(model, "c.weight", {1, 10, 100, 1, 1, 1});
  // Row 0 of channel 0 is 1 2 3: at -1..1 that is 10*1 + 100*2, at 1..3 it is 2 + 10*3.
  EXPECT_THAT(run(model, {1, 2, 3, 3},
                  {1, 2, 3, 4, 5, 6, 7, 8, 9,  //
                   1, 1, 1, 2, 2, 2, 3, 3, 3}),
              ElementsAre(210, 32, 870, 98, 2, 2, 6, 6));
}

TEST(BatchNorm, StartsAsTheIdentityInInferenceForm) {
  Model model = model_of({Dim("N"), 2, 1}, {BatchNorm{.name = "bn", .epsilon = 3}});
  for (const char* name : {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}) {
    EXPECT_EQ(model.graph().find(name)->known_shape(), Shape{2}) << name;
  }
  // (x - 0) / sqrt(1 + 3)
  EXPECT_THAT(run(model, {1, 2, 1}, {8, -2}), ElementsAre(4, -1));
}

TEST(Residual, AddsTheInputOrItsShortcut) {
  Model model = model_of({Dim("N"), 2}, {Residual{.body = {Relu{}}},
                                         Residual{.name = "block",
                                                  .body = {Linear{.name = "a", .out = 1}},
                                                  .shortcut = {Linear{.name = "b", .out = 1}}}});
  set_weights(model, "a.weight", {1, 2});
  set_weights(model, "a.bias", {0.5F});
  set_weights(model, "b.weight", {10, 20});
  set_weights(model, "b.bias", {0});
  // x = (3, -1): relu(x) + x = (6, -1); then 6 - 2 + 0.5 + 60 - 20.
  EXPECT_THAT(run(model, {1, 2}, {3, -1}), ElementsAre(44.5F));
  EXPECT_EQ(model.graph().outputs()[0]->name(), "block");
}

TEST(Residual, RefusesBranchesThatWouldBroadcast) {
  const Error error = error_of([] {
    model_of({Dim("N"), 3}, {Residual{.body = {Linear{.out = 1}}}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::shape);
  EXPECT_THAT(error.what(), HasSubstr("residual 'residual1': the body gives f32[N,1], the shortcut "
                                      "f32[N,3]"));
  EXPECT_EQ(kind_of([] { model_of({3}, {Residual{}}); }), ErrorKind::argument);
}

TEST(Activations, ComputeWhatTheySay) {
  const auto of = [](const Layer& layer, float x, std::int64_t opset = 20) {
    return run(model_of({Dim("N")}, {layer}, opset), {1}, {x}).at(0);
  };
  EXPECT_EQ(of(Relu{}, -2), 0);
  EXPECT_EQ(of(Relu6{}, 7), 6);
  EXPECT_EQ(of(Relu6{}, 7, 10), 6);
  EXPECT_EQ(of(LeakyRelu{.alpha = 0.25F}, -2), -0.5F);
  EXPECT_FLOAT_EQ(of(Sigmoid{}, 1), 0.7310586F);
  EXPECT_FLOAT_EQ(of(Tanh{}, 1), 0.7615942F);
  EXPECT_FLOAT_EQ(of(Silu{}, 1), 0.7310586F);
  EXPECT_FLOAT_EQ(of(Gelu{}, 1), 0.8413447F);
  EXPECT_FLOAT_EQ(of(Gelu{}, 1, 19), 0.8413447F);  // by Erf
  EXPECT_EQ(kind_of([&] { of(Gelu{}, 1, 8); }), ErrorKind::unsupported);
  EXPECT_EQ(of(Dropout{.ratio = 0.5F}, 3), 3);
  EXPECT_EQ(of(Dropout{.ratio = 0.5F}, 3, 7), 3);
}

TEST(Softmax, KeepsItsMeaningInOldOpsets) {
  const float e = std::exp(1.0F);
  for (const std::int64_t opset : {7, 11, 13, 17}) {
    EXPECT_THAT(run(model_of({Dim("N"), 2}, {Softmax{}}, opset), {1, 2}, {1, 0}),
                ElementsAre(::testing::FloatEq(e / (e + 1)), ::testing::FloatEq(1 / (e + 1))))
        << opset;
  }
  const auto over_channels = [](std::int64_t opset) {
    return model_of({Dim("N"), 2, 1, 1}, {LogSoftmax{.axis = 1}}, opset);
  };
  EXPECT_THAT(
      run(over_channels(13), {1, 2, 1, 1}, {0, 0}),
      ElementsAre(::testing::FloatEq(-std::log(2.0F)), ::testing::FloatEq(-std::log(2.0F))));
  EXPECT_EQ(kind_of([&] { over_channels(12); }), ErrorKind::unsupported);
}

TEST(Pooling, StridesByItsKernel) {
  const std::vector<float> image = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const SymShape shape = {Dim("N"), 1, 4, 4};
  EXPECT_THAT(run(model_of(shape, {MaxPool{}}), {1, 1, 4, 4}, image), ElementsAre(6, 8, 14, 16));
  EXPECT_THAT(run(model_of(shape, {AveragePool{.kernel = {4}}}), {1, 1, 4, 4}, image),
              ElementsAre(8.5F));
  EXPECT_THAT(run(model_of(shape, {GlobalAveragePool{}, Flatten{}}), {1, 1, 4, 4}, image),
              ElementsAre(8.5F));
  // One corner of four pixels lies inside: PyTorch divides by four.
  const AveragePool padded{.kernel = {2}, .stride = {4}, .padding = {1}};
  EXPECT_THAT(run(model_of(shape, {padded}), {1, 1, 4, 4}, image), ElementsAre(0.25F, 1, 3.25F, 4));
  AveragePool unpadded = padded;
  unpadded.count_padding = false;
  EXPECT_THAT(run(model_of(shape, {unpadded}), {1, 1, 4, 4}, image), ElementsAre(1, 4, 13, 16));
}

// Names.

TEST(LayerNames, AreMadeUniqueOrRefused) {
  Model model = model_of({Dim("N"), 4}, {Linear{.out = 4}, Relu{}, Linear{.out = 4}, Relu6{},
                                         Linear{.name = "linear4", .out = 4}, Relu6{}, Relu{},
                                         Linear{.out = 4}, Linear{.out = 4}});
  std::vector<std::string> names;
  for (const auto& node : model.graph().nodes()) {
    names.push_back(node->name());
    EXPECT_EQ(node->output()->name(), node->name());
  }
  EXPECT_THAT(names, ElementsAre("linear1", "relu1", "linear2", "relu6_1", "linear4", "relu6_2",
                                 "relu2", "linear3", "linear5"));
  const Error error = error_of([] {
    model_of({Dim("N"), 4}, {Linear{.name = "head", .out = 4}, Relu{.name = "head"}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::argument);
  EXPECT_THAT(error.what(), HasSubstr("relu: the name 'head' is taken"));
}

// Errors.

std::string message_of(const SymShape& shape, const std::vector<Layer>& layers,
                       std::int64_t opset = 17) {
  return error_of([&] { model_of(shape, layers, opset); }).what();
}

TEST(LayerErrors, NameTheValueAndTheRemedy) {
  EXPECT_THAT(message_of({Dim("N"), Dim("features")}, {Linear{.name = "head", .out = 2}}),
              HasSubstr("linear 'head': 'x' is f32[N,features], but its dim -1 must be a known "
                        "number of features; give the model's inputs fixed sizes"));
  EXPECT_THAT(message_of({Dim("N"), 3}, {Conv{.out = 2}}),
              HasSubstr("conv 'conv1': 'x' is f32[N,3], wanted rank 3 to 5"));
  EXPECT_THAT(message_of({Dim("N"), 3}, {Linear{}}),
              HasSubstr("linear 'linear1': out is 0, wanted at least 1"));
  EXPECT_THAT(message_of({Dim("N"), 3, 8, 8}, {Conv{.out = 2, .kernel = {3, 3, 3}}}),
              HasSubstr("conv 'conv1': kernel has 3 numbers, wanted 1 or 2"));
  EXPECT_THAT(message_of({Dim("N"), 3, 8, 8}, {Conv{.out = 2, .groups = 2}}),
              HasSubstr("3 channels in and 2 out do not divide into 2 groups"));
  EXPECT_THAT(message_of({Dim("N"), 3, 8, 8}, {MaxPool{.stride = {0}}}),
              HasSubstr("max_pool 'max_pool1': stride is 0, wanted at least 1"));
  EXPECT_THAT(message_of({Dim("N"), 3}, {Dropout{.ratio = 1}}),
              HasSubstr("ratio is 1, wanted one in [0, 1)"));
  EXPECT_THAT(message_of({Dim("N"), 3}, {Relu{}}, 6), HasSubstr("the model imports opset 6"));
}

TEST(LayerErrors, RefuseWhatDoesNotFitOrExist) {
  EXPECT_EQ(kind_of([] {
              model_of({Dim("N"), 4}, {Linear{.out = std::int64_t{1} << 62}});
            }),
            ErrorKind::shape);
  Graph graph;
  LayerContext context(graph, 17);
  Value* const untyped = graph.add_input("untyped", {.dtype = DType::f32});
  EXPECT_EQ(kind_of([&] { add_layer(context, Linear{.out = 1}, untyped); }), ErrorKind::shape);
  Value* const ids = graph.add_input("ids", {.dtype = DType::i64, .shape = SymShape{2, 3}});
  EXPECT_EQ(kind_of([&] { add_layer(context, Linear{.out = 1}, ids); }), ErrorKind::type);
}

// First values.

TEST(Init, DependsOnSeedNameAndNothingElse) {
  const Tensor weight = init_uniform(1, "fc.weight", DType::f32, {8, 4}, 0.5);
  EXPECT_TRUE(equal_bits(weight, init_uniform(1, "fc.weight", DType::f32, {8, 4}, 0.5)));
  EXPECT_FALSE(equal_bits(weight, init_uniform(2, "fc.weight", DType::f32, {8, 4}, 0.5)));
  EXPECT_FALSE(equal_bits(weight, init_uniform(1, "fc2.weight", DType::f32, {8, 4}, 0.5)));
  const auto weight_of = [](const std::vector<Layer>& layers, const char* name) {
    return model_of({Dim("N"), 4}, layers).graph().find(name)->initializer();
  };
  const Linear head{.name = "head", .out = 4, .seed = 5};
  const Tensor alone = weight_of({head}, "head.weight");
  EXPECT_TRUE(equal_bits(alone, weight_of({Linear{.out = 4}, Relu{}, head}, "head.weight")));
  EXPECT_TRUE(equal_bits(alone, init_uniform(5, "head.weight", DType::f32, {4, 4}, 0.5)));
}

TEST(Init, FillsTheRangeOfPyTorchsDefault) {
  // fan_in = 4 * 5 * 5: the bound is 0.1. A sample of U(-b, b) has variance b^2 / 3.
  const Model model =
      model_of({Dim("N"), 8, 9, 9}, {Conv{.name = "c", .out = 400, .kernel = {5}, .groups = 2}});
  for (const char* name : {"c.weight", "c.bias"}) {
    double largest = 0;
    double squares = 0;
    const std::vector<double> values = to_double(model.graph().find(name)->initializer());
    for (const double value : values) {
      largest = std::max(largest, std::abs(value));
      squares += value * value;
    }
    EXPECT_LE(largest, 0.1 + 1e-8) << name;
    EXPECT_GT(largest, 0.098) << name;
    EXPECT_NEAR(squares / static_cast<double>(values.size()), 0.01 / 3, 5e-4) << name;
  }
}

TEST(Init, NormalHasTheDeviationOfFanOut) {
  // fan_out = 50 * 3 * 3 = 450: deviation sqrt(2 / 450) = 1 / 15.
  const Model model = model_of(
      {Dim("N"), 100, 9, 9},
      {Conv{.name = "c", .out = 50, .init = Init{.kind = Init::kaiming_normal, .fan_out = true}}});
  double sum = 0;
  double squares = 0;
  const std::vector<double> values = to_double(model.graph().find("c.weight")->initializer());
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());  // 45,000
  EXPECT_NEAR(sum / count, 0, 0.002);
  EXPECT_NEAR(std::sqrt(squares / count), 1.0 / 15, 0.001);
}

struct Moments {
  double mean;
  double deviation;
  double largest;
};

/// Of 40,000 numbers of a weight with fans of 200 in and 50 out.
Moments moments_of(const Init& init) {
  const Tensor weight = init_weight(init, {.in = 200, .out = 50}, 1, "w", DType::f32, {200, 200});
  Moments moments{};
  const std::vector<double> values = to_double(weight);
  for (const double value : values) {
    moments.mean += value / 40000;
    moments.deviation += value * value / 40000;
    moments.largest = std::max(moments.largest, std::abs(value));
  }
  moments.deviation = std::sqrt(moments.deviation - moments.mean * moments.mean);
  return moments;
}

/// PyTorch's formulas: U(-b, b) has the deviation b / sqrt(3).
TEST(Init, UniformsFillTheirBounds) {
  const auto check = [](const Init& init, double bound) {
    const Moments found = moments_of(init);
    EXPECT_LE(found.largest, bound * (1 + 1e-6));
    EXPECT_GT(found.largest, bound * 0.999);
    EXPECT_NEAR(found.mean, 0, bound * 0.01);
    EXPECT_NEAR(found.deviation, bound / std::sqrt(3.0), bound * 0.01);
  };
  check({.kind = Init::uniform_fan_in}, 1 / std::sqrt(200.0));
  check({.kind = Init::kaiming_uniform}, std::sqrt(6.0 / 200));
  check({.kind = Init::kaiming_uniform, .fan_out = true}, std::sqrt(6.0 / 50));
  check({.kind = Init::kaiming_uniform, .slope = std::sqrt(5.0)}, 1 / std::sqrt(200.0));
  check({.kind = Init::xavier_uniform, .gain = 2}, 2 * std::sqrt(6.0 / 250));
}

TEST(Init, NormalsHaveTheirDeviation) {
  const auto check = [](const Init& init, double deviation, double mean = 0) {
    const Moments found = moments_of(init);
    EXPECT_NEAR(found.mean, mean, deviation * 0.02);
    EXPECT_NEAR(found.deviation, deviation, deviation * 0.01);
    EXPECT_GT(found.largest, deviation * 3.5);
  };
  check({.kind = Init::kaiming_normal}, std::sqrt(2.0 / 200));
  check({.kind = Init::kaiming_normal, .fan_out = true, .slope = 0.5}, std::sqrt(2 / (1.25 * 50)));
  check({.kind = Init::xavier_normal}, std::sqrt(2.0 / 250));
  check({.kind = Init::xavier_normal, .gain = 0.5}, 0.5 * std::sqrt(2.0 / 250));
  check({.kind = Init::normal, .mean = 3, .deviation = 0.02}, 0.02, 3);
}

TEST(Init, ConstantsAreConstant) {
  const Init init{.kind = Init::constant, .value = -0.25};
  EXPECT_THAT(to_double(init_weight(init, {}, 1, "w", DType::f32, {2})), ElementsAre(-0.25, -0.25));
  EXPECT_EQ(kind_of([] { init_weight({}, {.in = 0}, 1, "w", DType::f32, {2}); }),
            ErrorKind::argument);
  EXPECT_THAT(error_of([] { init_of("he"); }).what(),
              HasSubstr("no initializer is called 'he'; valid: 'uniform_fan_in', "));
}

TEST(Init, ABiasStartsAtZeroBesideAnInitializer) {
  const Model model = model_of(
      {Dim("N"), 2, 4}, {Conv{.name = "c", .out = 3, .init = Init{.kind = Init::xavier_normal}}});
  EXPECT_THAT(to_double(model.graph().find("c.bias")->initializer()), ElementsAre(0, 0, 0));
}

// What cannot be is refused with what was found and wanted.

std::string refusal(const SymShape& shape, const Layer& layer) {
  return error_of([&] { model_of(shape, {layer}); }).what();
}

TEST(Layers, RefuseWrongSettings) {
  const SymShape image{Dim("N"), 6, 4, 4};
  const SymShape sequence{Dim("N"), Dim("L"), 6};
  EXPECT_THAT(refusal(image, ConvTranspose{.out = 4, .output_padding = {1}}),
              HasSubstr("output_padding is 1, wanted less than the stride, 1, or the dilation, 1"));
  EXPECT_THAT(refusal(image, ConvTranspose{.out = 5, .groups = 2}),
              HasSubstr("6 channels in and 5 out do not divide into 2 groups"));
  EXPECT_THAT(refusal(image, GroupNorm{.groups = 4}),
              HasSubstr("6 channels do not divide into 4 groups"));
  EXPECT_THAT(refusal(sequence, LayerNorm{.axes = 3}), HasSubstr("wanted rank 4 to 8"));
  EXPECT_THAT(refusal(sequence, LayerNorm{.axes = 0}), HasSubstr("axes is 0, wanted at least 1"));
  EXPECT_THAT(refusal(sequence, LayerNorm{.axes = 2}), HasSubstr("its dim -2 must be a known"));
  EXPECT_THAT(refusal(image, Reshape{.shape = {5, -1}}),
              HasSubstr("a sample has 96 elements, wanted a multiple of 5"));
  EXPECT_THAT(refusal(image, Reshape{.shape = {95}}), HasSubstr("has 96 elements, wanted 95"));
  EXPECT_THAT(refusal(image, Reshape{.shape = {-1, -1}}), HasSubstr("of which one may be -1"));
  EXPECT_THAT(refusal(image, Reshape{}), HasSubstr("no dims are given"));
  EXPECT_THAT(refusal(sequence, Embedding{.count = 3, .size = 2}),
              HasSubstr("is f32[N,L,6], wanted indices, i64 or i32"));
  EXPECT_THAT(refusal(sequence, Lstm{}), HasSubstr("hidden is 0, wanted at least 1"));
  EXPECT_THAT(refusal(image, Gru{.hidden = 3}), HasSubstr("wanted rank 3"));
  EXPECT_THAT(refusal(sequence, MultiHeadAttention{.heads = 4}),
              HasSubstr("6 features do not divide into 4 heads"));
}

TEST(Layers, RefuseNumbersThatMakeNoSense) {
  const SymShape image{Dim("N"), 6, 4, 4};
  const float nan = std::nanf("");
  EXPECT_THAT(refusal(image, BatchNorm{.momentum = 5}),
              HasSubstr("momentum is 5, wanted a finite number from 0 to 1"));
  EXPECT_THAT(refusal(image, BatchNorm{.momentum = nan}), HasSubstr("momentum is nan"));
  EXPECT_THAT(refusal(image, BatchNorm{.epsilon = -3}),
              HasSubstr("epsilon is -3, wanted a finite number of at least 0"));
  EXPECT_THAT(refusal(image, LayerNorm{.epsilon = nan}), HasSubstr("epsilon is nan"));
  EXPECT_THAT(refusal(image, GroupNorm{.epsilon = HUGE_VALF}), HasSubstr("epsilon is inf"));
  EXPECT_THAT(refusal(image, LeakyRelu{.alpha = nan}), HasSubstr("alpha is nan, wanted a"));
  for (const Init& init :
       {Init{.slope = std::nan("")}, Init{.gain = HUGE_VAL}, Init{.mean = HUGE_VAL},
        Init{.deviation = HUGE_VAL}, Init{.value = HUGE_VAL}}) {
    EXPECT_THAT(refusal(image, Conv{.out = 2, .init = init}), HasSubstr("wanted finite ones"));
  }
  model_of(image, {BatchNorm{.epsilon = 0, .momentum = 1}, LeakyRelu{.alpha = -1}});
}

TEST(Layers, SequencesMayHaveAnyLength) {
  const Model model = model_of(
      {Dim("N"), Dim("L"), 6},
      {MultiHeadAttention{.heads = 2}, LayerNorm{}, Lstm{.hidden = 3, .bidirectional = true}});
  EXPECT_EQ(model.graph().outputs()[0]->shape()->rank(), 3);
  EXPECT_EQ(run(model, {2, 5, 6}, std::vector<float>(60, 0.5F)).size(), 60U);
  EXPECT_EQ(run(model, {1, 1, 6}, std::vector<float>(6, 0.5F)).size(), 6U);
  verify(model);
}

TEST(Init, FollowsTheElementType) {
  Graph graph;
  LayerContext context(graph, 17);
  Value* const x = graph.add_input("x", {.dtype = DType::f64, .shape = SymShape{Dim("N"), 4}});
  add_layer(context, Linear{.name = "fc", .out = 2}, x);
  EXPECT_EQ(graph.find("fc.weight")->dtype(), DType::f64);
  EXPECT_EQ(graph.find("fc.bias")->dtype(), DType::f64);
  EXPECT_EQ(graph.outputs().size(), 0U);
  verify(graph);
}

}  // namespace
}  // namespace graft
