// Against onnxruntime: tests/interop/microsoft_test.py. Here by hand, and what is refused.
#include "core/passes/microsoft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "core/passes/pass_watch.h"
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
  const PassWatch watch;
  upgrade_opset(model);
  EXPECT_TRUE(watch.changed().contains("expand_microsoft"));
  EXPECT_EQ(text(graph.outputs()[0]->type()), "f32[2,4]");
  EXPECT_EQ(graph.outputs()[0]->name(), "z");
  for (const auto& node : graph.nodes()) EXPECT_FALSE(is_microsoft(*node));
}

/// y = ReorderOutput(Conv(ReorderInput(x))) by a weight [out,in,1,1] in blocks of `block` channels.
Model blocked_model(std::int64_t in, std::int64_t out, std::int64_t filled_in,
                    std::int64_t filled_out, std::int64_t block, const Tensor& plain) {
  const auto w = plain.values<const float>();
  Tensor weight = Tensor::zeros(DType::f32, {filled_out, filled_in, 1, 1});
  const auto at = weight.values<float>();
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t i = 0; i < in; ++i) {
      const std::int64_t blocks = filled_in / block;
      const std::int64_t place =
          ((o / block * blocks + i / block) * block + i % block) * block + o % block;
      at[static_cast<std::size_t>(place)] = w[static_cast<std::size_t>(o * in + i)];
    }
  }
  Model model;
  model.set_opset("", 13);
  model.set_opset("com.microsoft.nchwc", 1);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape({Dim(1), Dim(in), Dim(1), Dim(1)})});
  const auto blocked = [&](const char* op, const std::vector<Value*>& inputs,
                           Attributes attributes = {}) {
    return graph.add_node(op, "com.microsoft.nchwc", inputs, {op}, std::move(attributes))->output();
  };
  Value* const image = blocked("ReorderInput", {x});
  Value* const y = blocked("Conv", {image, graph.add_initializer("w", std::move(weight))});
  graph.add_output(blocked("ReorderOutput", {y}, {{"channels", out}}));
  return model;
}

/// 24 channels out are 24 in blocks of 8 and 32 in blocks of 16, whatever this machine has.
TEST(Microsoft, ShapesShowHowWideABlockIs) {
  constexpr std::int64_t kIn = 16;
  constexpr std::int64_t kOut = 24;
  std::vector<float> numbers(kIn * kOut);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 13) - 6.0F;
  const Tensor weight = Tensor::from<float>({kOut, kIn, 1, 1}, numbers);
  std::vector<float> image(kIn);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i) - 5.0F;
  const Tensor x = Tensor::from<float>({1, kIn, 1, 1}, image);
  std::vector<double> wanted(kOut);
  for (std::size_t o = 0; o < kOut; ++o) {
    for (std::size_t i = 0; i < kIn; ++i) {
      wanted[o] += double{numbers[o * kIn + i]} * double{image[i]};
    }
  }
  EXPECT_EQ(run(blocked_model(kIn, kOut, 16, 24, 8, weight), x), wanted);
  EXPECT_EQ(run(blocked_model(kIn, kOut, 16, 32, 16, weight), x), wanted);
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
  EXPECT_THAT(refused(model_of("PagedAttention", {2, 2}, {}, {})),
              HasSubstr("ops not known to Graft: com.microsoft.PagedAttention"));
  EXPECT_THAT(refused(model_of("GroupQueryAttention", {1, 2, 6}, {},
                               {{"num_heads", 3}, {"kv_num_heads", 2}})),
              HasSubstr("num_heads 3 is no multiple of kv_num_heads 2"));
  const std::int64_t many = std::int64_t{1} << 62;
  EXPECT_THAT(refused(model_of("GroupQueryAttention", {1, 2, 6}, {},
                               {{"num_heads", many}, {"kv_num_heads", many}})),
              HasSubstr("num_heads is 4611686018427387904, wanted 1 to 2147483647"));
  const Tensor columns = Tensor::zeros(DType::f32, {1, 0, many});
  EXPECT_THAT(refused(model_of("MultiHeadAttention", {1, 0, many}, {columns, columns, row},
                               {{"num_heads", 1}})),
              HasSubstr("overflows 64 bits"));
  const Tensor wide = Tensor::full(DType::f32, {2, 6}, 1.0);
  EXPECT_THAT(refused(model_of("Attention", {1, 3, 2}, {wide, Tensor(), Tensor(), one},
                               {{"num_heads", 1}})),
              HasSubstr("no form for its input 4 (past)"));
}

}  // namespace
}  // namespace graft::passes
