#include "core/layers/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/frozen.h"
#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "core/ops/builder.h"
#include "tests/core/error_of.h"
#include "tests/core/layers/small_models.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;

std::vector<float> counted(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(0.25F * static_cast<float>(i % 7) - 0.5F);
  return values;
}

/// Lets B of each adapter hold these numbers.
void train_b(Model& model) {
  for (const Value* value : model.graph().initializers()) {
    if (value->name().ends_with(".lora_B.weight")) {
      set_weights(model, value->name(), counted(value->known_shape().size()));
    }
  }
}

std::vector<std::string> layers_of(const Model& model) {
  std::vector<std::string> layers;
  for (const edit::LoraAdapter& adapter : edit::lora_adapters(model))
    layers.push_back(adapter.layer);
  return layers;
}

/// Adds adapters, lets them change, merges them: the results must be equal at each turn,
/// `initializers` as many as before.
void expect_same_when_merged(Model model, const Shape& shape) {
  const std::vector<float> x = counted(shape.size());
  const std::vector<float> first = run(model, shape, x);
  const std::size_t initializers = model.graph().initializers().size();
  const std::size_t nodes = model.graph().node_count();
  edit::add_lora(model, {.rank = 2, .alpha = 3.0, .seed = 1});
  verify(model);
  EXPECT_EQ(run(model, shape, x), first) << "B is zero";
  train_b(model);
  const std::vector<float> apart = run(model, shape, x);
  EXPECT_NE(apart, first);
  edit::merge_lora(model);
  verify(model);
  EXPECT_THAT(run(model, shape, x), Pointwise(FloatNear(2e-5F), apart));
  EXPECT_EQ(model.graph().initializers().size(), initializers);
  EXPECT_EQ(model.graph().node_count(), nodes);
  EXPECT_THAT(edit::frozen_names(model), IsEmpty());
}

TEST(Lora, AddsALowRankProduct) {
  Model model = model_of({Dim("N"), 2}, {Linear{.name = "fc", .out = 2}});
  set_weights(model, "fc.weight", {1, 2, 3, 4});  // [out,in]
  set_weights(model, "fc.bias", {0, 0});
  const edit::LoraReport report = edit::add_lora(model, {.pattern = "fc", .rank = 1, .alpha = 2.0});
  EXPECT_THAT(report.adapted, ElementsAre("fc"));
  EXPECT_THAT(report.left_out, IsEmpty());
  EXPECT_EQ(model.graph().find("fc.lora_A.weight")->known_shape(), Shape({1, 2}));
  EXPECT_EQ(model.graph().find("fc.lora_B.weight")->known_shape(), Shape({2, 1}));
  EXPECT_THAT(run(model, {1, 2}, {1, 1}), ElementsAre(3, 7));
  set_weights(model, "fc.lora_A.weight", {10, 1});
  set_weights(model, "fc.lora_B.weight", {1, -1});
  // 2 (x A^T) B^T = 2 * 11 * {1, -1}
  EXPECT_THAT(run(model, {1, 2}, {1, 1}), ElementsAre(25, -15));
  EXPECT_THAT(edit::merge_lora(model), ElementsAre("fc"));
  const auto weight = model.graph().find("fc.weight")->initializer().values<const float>();
  EXPECT_THAT(weight, ElementsAre(21, 4, -17, 2));
}

TEST(Lora, StartsAsALinearOfPyTorch) {
  Model model = model_of({Dim("N"), 16}, {Linear{.name = "fc", .out = 3}});
  edit::add_lora(model, {.rank = 4, .seed = 5});
  float most = 0;
  for (const float value :
       model.graph().find("fc.lora_A.weight")->initializer().values<const float>()) {
    EXPECT_LE(std::abs(value), 0.25F);
    most = std::max(most, std::abs(value));
  }
  EXPECT_GT(most, 0.2F);
}

TEST(Lora, OfGemmMatMulAndConvMerges) {
  expect_same_when_merged(model_of({Dim("N"), 5}, {Linear{.name = "fc", .out = 3}}), {4, 5});
  expect_same_when_merged(model_of({Dim("N"), 3, 5}, {Linear{.name = "fc", .out = 2}}), {2, 3, 5});
  expect_same_when_merged(
      model_of({Dim("N"), 3, 6, 7},
               {Conv{.name = "conv", .out = 4, .kernel = {3, 2}, .stride = {2}, .padding = {1}}}),
      {2, 3, 6, 7});
  expect_same_when_merged(
      model_of({Dim("N"), 2, 9}, {Conv{.name = "conv", .out = 4, .kernel = {3}, .dilation = {2}}}),
      {2, 2, 9});
  expect_same_when_merged(
      model_of({Dim("N"), 4, 5, 5}, {Conv{.name = "conv", .out = 6, .padding = {1}, .groups = 2}}),
      {2, 4, 5, 5});
}

/// y = 2 x w with w [3,4] by columns.
TEST(Lora, HeedsWhatGemmScales) {
  Model model;
  model.set_opset("", 13);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2, 3}});
  Value* const w = graph.add_initializer("w", Tensor::from<float>({3, 4}, counted(12)));
  graph.add_output(graph.add_node("Gemm", "", {x, w}, {"y"}, {{"alpha", 2.0F}})->output());
  expect_same_when_merged(model.clone(), {2, 3});
}

/// y = x w + (x w) w: one layer that is called twice.
TEST(Lora, OfALayerThatIsCalledTwiceIsOne) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{2, 3}}));
  const Expr w =
      builder.expr(graph.add_initializer("fc.weight", Tensor::from<float>({3, 3}, counted(9))));
  const Expr once = matmul(x, w);
  graph.add_output((once + matmul(once, w)).value());
  Model adapted = model.clone();
  edit::add_lora(adapted, {.rank = 1});
  EXPECT_THAT(layers_of(adapted), ElementsAre("fc"));
  EXPECT_EQ(adapted.graph().find("fc.lora_A.weight")->uses().size(), 2U);
  expect_same_when_merged(std::move(model), {2, 3});
}

/// x w with w = 0.5 (q - 1), q of 8 bits.
Model quantized_model() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2, 2}});
  Value* const q = graph.add_initializer("fc.weight_quantized",
                                         Tensor::from<std::int8_t>({2, 2}, {3, 5, -7, 9}));
  Value* const scale = graph.add_initializer("scale", Tensor::scalar(0.5F));
  Value* const zero = graph.add_initializer("zero", Tensor::scalar<std::int8_t>(1));
  Value* const w =
      graph.add_node("DequantizeLinear", "", {q, scale, zero}, {"fc.weight_dq"})->output();
  graph.add_output(graph.add_node("MatMul", "", {x, w}, {"y"})->output());
  return model;
}

TEST(Lora, StandsBesideAQuantizedWeight) {
  Model model = quantized_model();
  edit::add_lora(model, {.pattern = "fc\\.weight_quantized", .rank = 1});
  EXPECT_THAT(layers_of(model), ElementsAre("fc"));
  set_weights(model, "fc.lora_A.weight", {1, 0});
  set_weights(model, "fc.lora_B.weight", {0, 8});
  EXPECT_THAT(run(model, {2, 2}, {1, 0, 0, 1}), ElementsAre(1, 10, -4, 4));
  EXPECT_THAT(edit::merge_lora(model), ElementsAre("fc"));
  const Value* const merged = model.graph().find("fc.weight");
  ASSERT_NE(merged, nullptr);
  EXPECT_THAT(merged->initializer().values<const float>(), ElementsAre(1, 10, -4, 4));
  EXPECT_EQ(model.graph().node_count(), 1U) << "the quantized weight is gone";
}

TEST(Lora, TakesNamesFromWeightsBiasesAndNodes) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* x = graph.add_input("x", {DType::f32, SymShape{2, 2}});
  const auto add = [&](const std::string& weight, const std::string& node) {
    Value* const w = graph.add_initializer(weight, Tensor::zeros(DType::f32, {2, 2}));
    Node* const made = graph.add_node("MatMul", "", {x, w}, {graph.unique_name("y")});
    made->set_name(node);
    x = made->output();
  };
  Value* const unnamed = graph.add_initializer("val_3", Tensor::zeros(DType::f32, {2, 2}));
  x = graph.add_node("MatMul", "", {x, unnamed}, {"z"})->output();
  x = graph
          .add_node("Add", "",
                    {x, graph.add_initializer("qkv.bias", Tensor::zeros(DType::f32, {2}))}, {"q"})
          ->output();
  add("enc.0.proj.weight", "node_MatMul_1");
  add("onnx::MatMul_12", "/enc/0/fc/MatMul");
  add("plain", "");
  graph.add_output(x);
  EXPECT_THAT(edit::add_lora(model, {.rank = 1}).adapted,
              ElementsAre("qkv", "enc.0.proj", "enc.0.fc", "plain"));
}

TEST(Lora, AppliesAloneToTheBase) {
  const Model base = model_of(
      {Dim("N"), 4}, {Linear{.name = "fc1", .out = 4}, Relu{}, Linear{.name = "fc2", .out = 3}});
  Model model = base.clone();
  edit::add_lora(model, {.pattern = "fc2", .rank = 2, .alpha = 8.0});
  train_b(model);
  Model other = base.clone();
  edit::apply_lora(other, edit::lora_adapters(model));
  EXPECT_EQ(print(other.graph()), print(model.graph()));
  EXPECT_EQ(edit::lora_adapters(other).at(0).alpha, 8.0);
  const std::vector<float> x = counted(8);
  EXPECT_EQ(run(other, {2, 4}, x), run(model, {2, 4}, x));
}

TEST(Lora, RefusesWhatItCannotAdaptAndChangesNothing) {
  Model model = model_of({Dim("N"), 4, 8, 8}, {Conv{.name = "conv", .out = 4, .groups = 4},
                                               Flatten{}, Linear{.name = "fc", .out = 3}});
  const std::string before = print(model.graph());
  const auto refused = [&](const edit::LoraOptions& options) {
    return std::string(error_of([&] { edit::add_lora(model, options); }).what());
  };
  EXPECT_THAT(refused({.pattern = "fc9"}), HasSubstr("matches none of 1 layers: 'fc'"));
  EXPECT_THAT(refused({.pattern = "conv"}),
              HasSubstr("matches only Conv node 'conv': it is depthwise"));
  EXPECT_THAT(refused({.rank = 0}), HasSubstr("the rank is 0, wanted 1 to "));
  EXPECT_THAT(refused({.alpha = 0.0}), HasSubstr("alpha is 0, wanted a number above 0"));
  EXPECT_THAT(error_of([&] { edit::merge_lora(model); }).what(), HasSubstr("no adapter to merge"));
  const auto apply = [&](const edit::LoraAdapter& adapter) {
    return error_of([&] { edit::apply_lora(model, {adapter}); });
  };
  const Tensor one = Tensor::zeros(DType::f32, {1, 1});
  EXPECT_THAT(apply({"fc7", one, one, 1.0}).what(), HasSubstr("no layer 'fc7'; its layers: 'fc'"));
  const Error unfit = apply({"fc", one, one, 1.0});
  EXPECT_EQ(unfit.kind(), ErrorKind::shape);
  EXPECT_THAT(unfit.what(),
              HasSubstr("is A f32[1,1] and B f32[1,1], wanted f32[1,144] and f32[3,1]"));
  EXPECT_EQ(print(model.graph()), before);
  EXPECT_THAT(edit::add_lora(model, {.rank = 1}).left_out,
              ElementsAre(HasSubstr("Conv node 'conv': it is depthwise")));
  EXPECT_THAT(refused({.pattern = "fc", .rank = 1}),
              HasSubstr("it has an adapter already ('fc.lora_A.weight')"));
}

TEST(Lora, AppliesOneAdapterALayer) {
  Model model = model_of({Dim("N"), 4}, {Linear{.name = "fc", .out = 3}});
  const std::string before = print(model.graph());
  const edit::LoraAdapter fits{"fc", Tensor::zeros(DType::f32, {1, 4}),
                               Tensor::zeros(DType::f32, {3, 1}), 1.0};
  const Error twice = error_of([&] { edit::apply_lora(model, {fits, fits}); });
  EXPECT_EQ(twice.kind(), ErrorKind::argument);
  EXPECT_THAT(twice.what(), HasSubstr("layer 'fc' is given two adapters"));
  for (const double alpha : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    edit::LoraAdapter scaled = fits;
    scaled.alpha = alpha;
    EXPECT_EQ(kind_of([&] { edit::apply_lora(model, {scaled}); }), ErrorKind::argument) << alpha;
  }
  EXPECT_EQ(print(model.graph()), before);
  edit::apply_lora(model, {fits});
}

TEST(Lora, ThatWasChangedIsNotMerged) {
  Model model = model_of({Dim("N"), 4}, {Linear{.name = "fc", .out = 3}});
  edit::add_lora(model, {.rank = 1});
  Graph& graph = model.graph();
  for (const auto& node : graph.nodes()) {
    if (node->is("Mul")) graph.replace_all_uses(node->output(), node->input(0));
  }
  const Error error = error_of([&] { edit::merge_lora(model); });
  EXPECT_EQ(error.kind(), ErrorKind::model);
  EXPECT_THAT(error.what(), HasSubstr("the nodes round 'fc.lora_B.weight'"));
}

/// What a file says of groups, and the rows of A and B that it holds, need not fit each other.
TEST(Lora, WhoseGroupsDoNotFitIsNotMerged) {
  const auto refused = [](std::int64_t groups, const Shape& a, const Shape& b) {
    Model model =
        model_of({Dim("N"), 4, 3}, {Conv{.name = "conv", .out = 6, .kernel = {1}, .groups = 2}});
    edit::add_lora(model, {.rank = 1});
    Graph& graph = model.graph();
    const auto replace = [&](const std::string& name, const Shape& shape) {
      Value* const old = graph.find(name);
      Value* const fresh = graph.add_initializer("", Tensor::zeros(DType::f32, shape));
      graph.replace_all_uses(old, fresh);
      graph.remove_initializer(old);
      graph.rename(fresh, name);
    };
    replace("conv.lora_A.weight", a);
    replace("conv.lora_B.weight", b);
    for (const auto& node : graph.nodes()) {
      if (node->is("Conv") && node->name() == "conv") node->attributes.set({"group", groups});
    }
    return error_of([&] { edit::merge_lora(model); }).kind();
  };
  const Shape a{2, 2, 1};
  const Shape b{6, 1, 1};
  EXPECT_EQ(refused(0, a, b), ErrorKind::model) << "no groups";
  EXPECT_EQ(refused(8, {8, 2, 1}, b), ErrorKind::model) << "less than a row of B each";
  EXPECT_EQ(refused(2, a, {5, 1, 1}), ErrorKind::model) << "the last row of B would be of a third";
  EXPECT_EQ(refused(2, {2, 2, 1}, {1 << 20, 1, 1}), ErrorKind::model) << "another weight";
}

}  // namespace
}  // namespace graft
