#include "core/layers/replace_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/edit.h"
#include "core/graph/frozen.h"
#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "core/layers/output_types.h"
#include "tests/core/error_of.h"
#include "tests/core/layers/small_models.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Model gemm_head(std::int64_t opset = 17) {
  return model_of({Dim("N"), 4},
                  {Linear{.name = "fc1", .out = 5}, Relu{.name = "act"},
                   Linear{.name = "fc", .out = 3}, Softmax{.name = "probs"}},
                  opset);
}

TEST(ReplaceHead, GivesAGemmFreshWeightsAndKeepsTheSoftmax) {
  Model model = gemm_head();
  const edit::ReplacedHead done = edit::replace_head(model, 7, {.seed = 2});
  EXPECT_EQ(done.layer, "Gemm node 'fc'");
  EXPECT_EQ(done.features, 5);
  EXPECT_EQ(done.old_classes, 3);
  EXPECT_THAT(done.parameters, ElementsAre("fc.weight", "fc.bias"));
  EXPECT_THAT(done.kept, ElementsAre("Softmax node 'probs'"));
  const Graph& graph = model.graph();
  EXPECT_EQ(graph.find("fc.weight")->known_shape(), (Shape{7, 5}));
  EXPECT_EQ(graph.find("fc.bias")->known_shape(), (Shape{7}));
  EXPECT_EQ(graph.find("fc")->shape(), (SymShape{Dim("N"), 7}));
  EXPECT_EQ(graph.outputs()[0]->type(), (ValueType{DType::f32, SymShape{Dim("N"), 7}}));
  verify(model);
  // The same as a fresh layer of that name and seed.
  const Model fresh = model_of({Dim("N"), 5}, {Linear{.name = "fc", .out = 7, .seed = 2}});
  for (const char* name : {"fc.weight", "fc.bias"}) {
    EXPECT_TRUE(
        equal_bits(graph.find(name)->initializer(), fresh.graph().find(name)->initializer()))
        << name;
  }
  EXPECT_EQ(run(model, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}).size(), 14U);
}

/// The new weights have the names of the old ones, which were frozen.
TEST(ReplaceHead, LetsTheFreshHeadTrain) {
  Model model = gemm_head();
  edit::freeze(model, "fc.*");
  edit::replace_head(model, 7);
  EXPECT_THAT(edit::frozen_names(model), ElementsAre("fc1.weight", "fc1.bias"));
  EXPECT_EQ(model.graph().find("fc.weight")->role, Role::parameter);
}

TEST(ReplaceHead, NamesAndInitializesAsTold) {
  Model model = gemm_head();
  const auto done = edit::replace_head(
      model, 2, {.name = "head", .init = Init{.kind = Init::constant, .value = 0.5}});
  EXPECT_THAT(done.parameters, ElementsAre("head.weight", "head.bias"));
  EXPECT_EQ(model.graph().find("fc.weight"), nullptr);
  EXPECT_THAT(to_double(model.graph().find("head.bias")->initializer()), ElementsAre(0, 0));
  EXPECT_EQ(to_double(model.graph().find("head.weight")->initializer()),
            std::vector<double>(10, 0.5));
}

TEST(ReplaceHead, TakesAMatMulWithItsBiasAndATurnedWeight) {
  Model model = model_of({Dim("N"), 2, 4}, {Linear{.name = "fc", .out = 3}});  // MatMul, Add
  EXPECT_THAT(edit::replace_head(model, 6).parameters, ElementsAre("fc.weight", "fc.bias"));
  EXPECT_EQ(model.graph().find("fc.weight")->known_shape(), (Shape{4, 6}));
  EXPECT_EQ(model.graph().outputs()[0]->shape(), (SymShape{Dim("N"), 2, 6}));

  // As torch.onnx.export writes x W^T: [classes,features] behind a Transpose.
  Model turned;
  turned.set_opset("", 17);
  Graph& graph = turned.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("N"), 4}});
  Value* const w = graph.add_initializer("w", Tensor::zeros(DType::f32, {3, 4}));
  Value* const t =
      graph.add_node("Transpose", "", {w}, {"w_t"}, {{"perm", std::vector<std::int64_t>{1, 0}}})
          ->output();
  graph.add_output(graph.add_node("MatMul", "", {x, t}, {"y"})->output());
  edit::replace_head(turned, 5);
  EXPECT_EQ(graph.find("w")->known_shape(), (Shape{5, 4}));
  EXPECT_EQ(run(turned, {1, 4}, {1, 2, 3, 4}).size(), 5U);
  verify(turned);
}

TEST(ReplaceHead, TakesAConvAndAReshapeBehindIt) {
  // SqueezeNet's end: a convolution to the classes, pooled, flattened by a Reshape.
  Model model = model_of({Dim("N"), 2, 3, 3}, {Conv{.name = "conv", .out = 4, .kernel = {1}},
                                               Relu{}, GlobalAveragePool{}});
  Graph& graph = model.graph();
  Value* const target = graph.add_initializer("to", Tensor::from<std::int64_t>({2}, {-1, 4}));
  graph.set_outputs({graph.add_node("Reshape", "", {graph.outputs()[0], target}, {"y"})->output()});
  edit::complete_output_types(model);
  const auto done = edit::replace_head(model, 9);
  EXPECT_EQ(done.old_classes, 4);
  EXPECT_EQ(graph.find("conv.weight")->known_shape(), (Shape{9, 2, 1, 1}));
  EXPECT_EQ(graph.outputs()[0]->shape(), (SymShape{Dim("N"), 9}));
  EXPECT_EQ(run(model, {1, 2, 3, 3}, std::vector<float>(18, 1.0F)).size(), 9U);
  verify(model);
}

TEST(ReplaceHead, LeavesSharedWeightsToOthers) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const ids = graph.add_input("ids", {DType::i64, SymShape{Dim("N"), 2}});
  Value* const table = graph.add_initializer("table", Tensor::zeros(DType::f32, {3, 4}));
  Value* const rows = graph.add_node("Gather", "", {table, ids}, {"rows"})->output();
  Value* const turned = graph.add_node("Transpose", "", {table}, {"turned"})->output();
  graph.add_output(graph.add_node("MatMul", "", {rows, turned}, {"logits"})->output());
  const auto done = edit::replace_head(model, 5);
  EXPECT_THAT(done.parameters, ElementsAre("table_1"));
  EXPECT_EQ(graph.find("table")->known_shape(), (Shape{3, 4}));
  EXPECT_EQ(graph.find("table_1")->known_shape(), (Shape{5, 4}));
  verify(model);
}

TEST(ReplaceHead, RefusesWhatHoldsTheOldClassesElsewhere) {
  Model normed = model_of({Dim("N"), 4}, {Linear{.name = "fc", .out = 3}, BatchNorm{.name = "bn"}});
  const std::string before = print(normed);
  const Error error = error_of([&] { edit::replace_head(normed, 5); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("BatchNormalization node 'bn' behind the head holds "
                                      "'bn.weight', f32[3], numbers of the old classes; cut the "
                                      "model before it and append layers"));
  EXPECT_EQ(print(normed), before);

  Model beside = model_of({Dim("N"), 4}, {Residual{.body = {Linear{.name = "fc", .out = 4}}}});
  EXPECT_THAT(error_of([&] { edit::replace_head(beside, 5); }).what(),
              HasSubstr("Gemm node 'fc' is not all that makes 'residual1'"));
  Model recurrent = model_of({Dim("N"), 2, 4}, {Lstm{.name = "lstm", .hidden = 3}});
  EXPECT_THAT(error_of([&] { edit::replace_head(recurrent, 5); }).what(),
              HasSubstr("LSTM node 'lstm_l0' is no Gemm, MatMul or Conv"));
  Model plain = model_of({Dim("N"), 4}, {Relu{}});
  EXPECT_THAT(error_of([&] { edit::replace_head(plain, 5); }).what(),
              HasSubstr("no layer with weights makes 'relu1'; append one"));
}

TEST(ReplaceHead, RefusesATargetThatIsComputedForTheOldClasses) {
  // Old exporters write Reshape(y, Concat(Shape(y)[0], classes)).
  Model model = model_of({Dim("N"), 4}, {Linear{.name = "fc", .out = 3}});
  Graph& graph = model.graph();
  Value* const fc = graph.outputs()[0];
  Value* const shape = graph.add_node("Shape", "", {fc}, {"shape"})->output();
  Value* const zero = graph.add_initializer("zero", Tensor::from<std::int64_t>({1}, {0}));
  Value* const batch = graph.add_node("Gather", "", {shape, zero}, {"batch"})->output();
  Value* const three = graph.add_initializer("three", Tensor::from<std::int64_t>({1}, {3}));
  Value* const target =
      graph.add_node("Concat", "", {batch, three}, {"target"}, {{"axis", 0}})->output();
  graph.set_outputs({graph.add_node("Reshape", "", {fc, target}, {"y"})->output()});
  EXPECT_EQ(kind_of([&] { edit::replace_head(model, 5); }), ErrorKind::shape);
  EXPECT_EQ(graph.find("fc.weight")->known_shape(), (Shape{3, 4}));
}

TEST(ReplaceHead, WantsAnOutputAndClasses) {
  Model model = gemm_head();
  EXPECT_THAT(error_of([&] { edit::replace_head(model, 0); }).what(),
              HasSubstr("classes is 0, wanted at least 1"));
  EXPECT_THAT(error_of([&] { edit::replace_head(model, 2, {.output = "fc"}); }).what(),
              HasSubstr("'fc' is no output; its outputs: 'probs'"));
  EXPECT_THAT(error_of([&] { edit::replace_head(model, 2, {.name = "fc1"}); }).what(),
              HasSubstr("the name 'fc1.bias' is taken"));
  model.graph().add_output(model.graph().find("act"));
  EXPECT_THAT(error_of([&] { edit::replace_head(model, 2); }).what(),
              HasSubstr("the model has 2 outputs; name one of them: 'probs', 'act'"));
  EXPECT_EQ(edit::replace_head(model, 2, {.output = "probs"}).classes, 2);
}

}  // namespace
}  // namespace graft
