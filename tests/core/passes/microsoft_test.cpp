// Against onnxruntime: tests/interop/microsoft_test.py. Here by hand, and what is refused.
#include "core/passes/microsoft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"

namespace graft::passes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// y = op(x, ...) with constants behind x.
Model model_of(const std::string& op, const Shape& x, const std::vector<Tensor>& constants,
               Attributes attributes, int outputs = 1) {
  Model model;
  model.set_opset("", 13);
  model.set_opset("com.microsoft", 1);
  Graph& graph = model.graph();
  std::vector<Value*> inputs{graph.add_input("x", {DType::f32, SymShape(x)})};
  for (const Tensor& constant : constants) {
    inputs.push_back(constant.defined() ? graph.add_initializer("", constant) : nullptr);
  }
  std::vector<std::string> names{"y"};
  for (int i = 1; i < outputs; ++i) names.push_back("y" + std::to_string(i));
  Node* const node = graph.add_node(op, "com.microsoft", inputs, names, std::move(attributes));
  for (int i = 0; i < outputs; ++i) graph.add_output(node->output(i));
  return model;
}

std::vector<double> run(const Model& model, const Tensor& x) {
  return to_double(Session(model).run({x}).at(0));
}

std::string refused(const Model& model) {
  return error_of([&] {
           Model copy = model.clone();
           upgrade_opset(copy);
         })
      .what();
}

/// Bytes 0x21 0x43 hold 1, 2, 3, 4; w = 0.5 (q - 8) for the first block, q - 8 for the second.
TEST(Microsoft, UnpacksWeightsOfFourBits) {
  const Model model = model_of(
      "MatMulNBits", {1, 4},
      {Tensor::from<std::uint8_t>({1, 2, 1}, {0x21, 0x43}), Tensor::from<float>({2}, {0.5F, 1.0F})},
      {{"K", 4}, {"N", 1}, {"bits", 4}, {"block_size", 2}});
  const Tensor unit = Tensor::from<float>({1, 4}, {1, 10, 100, 1000});
  // -3.5 - 3 * 10 - 5 * 100 - 4 * 1000
  EXPECT_THAT(run(model, unit), ElementsAre(-4533.5));
  Model newest = model.clone();
  const std::string scales = newest.graph().initializers().at(1)->name();
  upgrade_opset(newest);
  EXPECT_EQ(newest.graph().find(scales)->role, Role::buffer) << "they are no parameter";
}

TEST(Microsoft, InfersWhatTheFileDoesNotState) {
  Model model = model_of("FusedMatMul", {2, 3}, {Tensor::full(DType::f32, {4, 3}, 1.0)},
                         {{"transB", 1}, {"alpha", 2.0F}});
  Graph& graph = model.graph();
  Value* const hidden = graph.add_node("Relu", "", {graph.outputs()[0]}, {"r"})->output();
  Node* const biased =
      graph.add_node("BiasGelu", "com.microsoft",
                     {hidden, graph.add_initializer("b", Tensor::zeros(DType::f32, {4}))}, {"z"});
  graph.set_outputs({biased->output()});
  upgrade_opset(model);
  EXPECT_EQ(text(graph.outputs()[0]->type()), "f32[2,4]");
  EXPECT_EQ(graph.outputs()[0]->name(), "z");
  for (const auto& node : graph.nodes()) EXPECT_FALSE(is_microsoft(*node));
}

TEST(Microsoft, AFunctionOfTheModelsOwnGoesFirst) {
  Model model = model_of("QuickGelu", {2}, {}, {});
  Function own{.domain = "com.microsoft", .name = "QuickGelu"};
  own.opset_imports = {{"", 13}};
  own.body = std::make_unique<Graph>("body");
  Value* const x = own.body->add_input("x", {});
  own.body->add_output(own.body->add_node("Neg", "", {x}, {"y"})->output());
  model.functions.push_back(std::move(own));
  EXPECT_THAT(run(model, Tensor::from<float>({2}, {1, -2})), ElementsAre(-1, 2));
}

TEST(Microsoft, RefusesWhatItHasNoFormForByName) {
  const Tensor one = Tensor::full(DType::f32, {2, 2}, 1.0);
  const Tensor row = Tensor::full(DType::f32, {2}, 1.0);
  EXPECT_THAT(refused(model_of("FusedMatMul", {2, 2}, {one}, {{"transBatchA", 1}})),
              HasSubstr("FusedMatMul node producing 'y': transBatchA is 1"));
  EXPECT_THAT(refused(model_of("FusedGemm", {2, 2}, {one}, {{"activation", "Mish"}})),
              HasSubstr("no form for its activation 'Mish'"));
  EXPECT_THAT(refused(model_of("SkipLayerNormalization", {2, 2}, {one, row}, {}, 2)),
              HasSubstr("no form for its output 1 ('y1')"));
  EXPECT_THAT(refused(model_of("BiasGelu", {2, 2}, {}, {})), HasSubstr("input 1 is missing"));
  EXPECT_THAT(
      refused(model_of("MatMulNBits", {2, 2}, {one, row}, {{"K", 2}, {"N", 2}, {"bits", 3}})),
      HasSubstr("no form for 3 bits in blocks of 32"));
  EXPECT_THAT(refused(model_of("GroupQueryAttention", {2, 2}, {}, {})),
              HasSubstr("ops not known to Graft: com.microsoft.GroupQueryAttention"));
  const Tensor wide = Tensor::full(DType::f32, {2, 6}, 1.0);
  EXPECT_THAT(refused(model_of("Attention", {1, 3, 2}, {wide, Tensor(), Tensor(), one},
                               {{"num_heads", 1}})),
              HasSubstr("no form for its input 4 (past)"));
}

}  // namespace
}  // namespace graft::passes
