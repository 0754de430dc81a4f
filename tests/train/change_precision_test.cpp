// In onnxruntime: tests/interop/half_precision_test.py. Here by hand, and what is refused.
#include "train/change_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/verify.h"
#include "core/ops/builder.h"
#include "core/runtime/session.h"
#include "io/onnx.h"
#include "tests/core/error_of.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// y = Relu(x w + b); z reads the same w and its own shape.
Model small_model(std::int64_t opset) {
  Model model;
  model.set_opset("", opset);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}});
  Value* const w = graph.add_initializer("w", Tensor::from<float>({2, 2}, {1, -2e5F, 0.5F, 3}));
  Value* const tiny = graph.add_initializer("epsilon", Tensor::scalar(1e-12F));
  const auto node = [&](const char* op, const std::vector<Value*>& inputs, const char* name) {
    Value* const result = graph.add_node(op, "", inputs, {name})->output();
    result->set_type({DType::f32, SymShape{Dim("N"), 2}});
    return result;
  };
  Value* const product = node("MatMul", {x, w}, "product");
  graph.add_output(node("Relu", {node("Add", {product, tiny}, "sum")}, "y"));
  return model;
}

TEST(ChangePrecision, HalvesWeightsAndKeepsInputsAndOutputs) {
  Model model = small_model(17);
  const edit::PrecisionReport report = edit::change_precision(model, DType::f16);
  verify(model);
  EXPECT_EQ(report.weights, 2U);
  EXPECT_EQ(report.clamped, 1U);
  EXPECT_THAT(report.stay, IsEmpty());
  const Graph& graph = model.graph();
  EXPECT_EQ(text(graph.inputs()[0]->type()), "f32[N,2]");
  EXPECT_EQ(graph.outputs()[0]->name(), "y");
  EXPECT_EQ(text(graph.outputs()[0]->type()), "f32[N,2]");
  const Value& w = *graph.find("w");
  EXPECT_EQ(w.dtype(), DType::f16);
  EXPECT_THAT(to_double(w.initializer()), ElementsAre(1, -65504, 0.5, 3));
  EXPECT_EQ(to_double(graph.find("epsilon")->initializer())[0], 0x1p-24) << "no division by zero";
  EXPECT_EQ(graph.node_count(), 5U) << "three nodes between two casts";
  EXPECT_THAT(to_double(Session(model).run({Tensor::from<float>({1, 2}, {2, 4})}).at(0)),
              ElementsAre(4, 0));
  onnx::parse(onnx::serialize(model));
}

TEST(ChangePrecision, TheNarrowModelTrains) {
  Model model = small_model(17);
  edit::change_precision(model, DType::bf16);
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.125F}, .trainable = "w"});
  const Tensor x = Tensor::from<float>({1, 2}, {1, 0});
  EXPECT_EQ(step.run({x}, Tensor::from<float>({1, 2}, {0, 0})), 0.5F);
  EXPECT_EQ(to_double(model.graph().find("w")->initializer())[0], 0.875);
}

/// y = Resize(Conv(x)) in opset 17, where bf16 has no Conv, and the factors are f32 in any type.
TEST(ChangePrecision, SaysWhatStaysAndWhy) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{1, 1, 2, 2}});
  Value* const w = graph.add_initializer("w", Tensor::full(DType::f32, {1, 1, 1, 1}, 2.0));
  Value* const scales = graph.add_initializer("scales", Tensor::from<float>({4}, {1, 1, 2, 2}));
  Value* const shift = graph.add_initializer("shift", Tensor::scalar(1.0F));
  Node* const conv = graph.add_node("Conv", "", {x, w}, {"c"});
  conv->set_name("conv1");
  Value* const sum = graph.add_node("Add", "", {conv->output(), shift}, {"s"})->output();
  graph.add_output(graph.add_node("Resize", "", {sum, nullptr, scales}, {"y"})->output());
  graph.outputs()[0]->set_type({DType::f32, SymShape{1, 1, 4, 4}});
  const edit::PrecisionReport report = edit::change_precision(model, DType::bf16);
  EXPECT_THAT(report.stay, ElementsAre("Conv node 'conv1': opset 17 has no form in bf16, opset 22 "
                                       "has"));
  EXPECT_EQ(w->dtype(), DType::f32);
  EXPECT_EQ(graph.find("scales")->dtype(), DType::f32);
  EXPECT_EQ(graph.find("shift")->dtype(), DType::bf16);
  onnx::parse(onnx::serialize(model));
  const Tensor image = Tensor::from<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(to_double(Session(model).run({image}).at(0))[0], 3.0);
}

/// What a body reads from outside stays f32 for it.
TEST(ChangePrecision, BodiesStay) {
  Model model = small_model(17);
  Graph& graph = model.graph();
  Value* const y = graph.outputs()[0];
  Value* const yes = graph.add_initializer("yes", Tensor::scalar(true));
  const auto branch = [&](const char* op) {
    auto body = std::make_shared<Graph>(op, &graph);
    Value* const result = body->add_node(op, "", {y}, {std::string("of_") + op})->output();
    result->set_type(y->type());
    body->add_output(result);
    return body;
  };
  Node* const choice = graph.add_node("If", "", {yes}, {"z"},
                                      {{"then_branch", AttributeValue(branch("Neg"))},
                                       {"else_branch", AttributeValue(branch("Abs"))}});
  choice->output()->set_type(y->type());
  graph.set_outputs({choice->output()});
  const edit::PrecisionReport report = edit::change_precision(model, DType::f16);
  verify(model);
  EXPECT_THAT(report.stay, ElementsAre("If node producing 'z': its bodies compute in f32"));
  EXPECT_THAT(to_double(Session(model).run({Tensor::from<float>({1, 2}, {2, 4})}).at(0)),
              ElementsAre(-4, 0));
}

TEST(ChangePrecision, RefusesWhatMakesNoSense) {
  Model model = small_model(17);
  EXPECT_THAT(error_of([&] { edit::change_precision(model, DType::f64); }).what(),
              HasSubstr("precision f64: wanted f16 or bf16"));
  edit::change_precision(model, DType::f16);
  EXPECT_THAT(error_of([&] { edit::change_precision(model, DType::f16); }).what(),
              HasSubstr("no f32 weight can have it"));
}

}  // namespace
}  // namespace graft
