// Low-rank adapters on an encoder that PyTorch exported, and over weights of 8 bits.
#include "core/layers/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/graph/frozen.h"
#include "core/runtime/session.h"
#include "io/onnx.h"
#include "io/safetensors.h"
#include "tests/core/error_of.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "train/lora_file.h"
#include "train/train_step.h"

namespace graft {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::SizeIs;

const std::string kCase = std::string(GRAFT_SOURCE_DIR) + "/tests/training_cases/bert_adamw/";

Model encoder() {
  return onnx::load(kCase + "model.onnx");
}

Tensor data(const std::string& file) {
  return onnx::load_tensor(kCase + "test_data_set_0/" + file).tensor;
}

std::vector<float> answer(const Model& model) {
  const Tensor y = Session(model).run({data("step_0_input_0.pb")}).at(0);
  const auto values = y.values<const float>();
  return {values.begin(), values.end()};
}

std::vector<float> train(Model& model, int steps) {
  TrainStep step(model, {.optimizer = Adam{.lr = 2e-2F}});
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    losses.push_back(step.run({data("step_0_input_0.pb")}, data("step_0_target_0.pb")));
  }
  return losses;
}

std::int64_t count_floats(const Model& model) {
  std::int64_t count = 0;
  for (const Value* value : model.graph().initializers()) {
    if (is_float(value->dtype())) count += value->initializer().size();
  }
  return count;
}

bool is_adapter(const std::string& name) {
  return name.find(".lora_") != name.npos;
}

TEST(Lora, TrainsLittleOfAnEncoderAndMergesIntoIt) {
  Model model = encoder();
  const std::vector<float> before = answer(model);
  const std::vector<Tensor> frozen = test::snapshot(model);
  const std::int64_t all = count_floats(model);
  const edit::LoraReport report =
      edit::add_lora(model, {.pattern = ".*self_attn", .rank = 4, .alpha = 8.0, .seed = 1});
  EXPECT_THAT(report.adapted, ElementsAre("enc.layers.0.self_attn", "enc.layers.1.self_attn"));
  EXPECT_EQ(answer(model), before);

  TrainStep step(model, {});
  EXPECT_THAT(step.parameter_names(), SizeIs(4));
  EXPECT_THAT(step.parameter_names(), Contains("enc.layers.0.self_attn.lora_A.weight"));
  EXPECT_LT(static_cast<double>(step.parameter_count()), 0.05 * static_cast<double>(all));

  const std::vector<float> losses = train(model, 10);
  EXPECT_LT(losses.back(), 0.5F * losses.front());
  for (std::size_t i = 0; i < frozen.size(); ++i) {
    EXPECT_TRUE(equal_bits(model.graph().initializers()[i]->initializer(), frozen[i])) << i;
  }
  const std::vector<float> apart = answer(model);
  EXPECT_NE(apart, before);
  edit::merge_lora(model);
  EXPECT_THAT(answer(model), Pointwise(FloatNear(1e-5F), apart));
  EXPECT_EQ(count_floats(model), all);
  EXPECT_GT(TrainStep(model, {}).parameter_names().size(), 20U) << "the base trains again";
}

TEST(Lora, IsRememberedByTheFile) {
  Model model = encoder();
  edit::add_lora(model, {.pattern = ".*linear.", .rank = 2});
  Model file = onnx::parse(onnx::serialize(model));
  TrainStep step(file, {});
  EXPECT_THAT(step.parameter_names(), SizeIs(8));
  EXPECT_THAT(step.parameter_names(), Each(EndsWith(".weight")));
  EXPECT_TRUE(std::ranges::all_of(step.parameter_names(), is_adapter));
  Model with_head = onnx::parse(onnx::serialize(model));
  edit::unfreeze(with_head, "out\\..*");
  EXPECT_THAT(TrainStep(with_head, {}).parameter_names(), Contains("out.bias"));
}

/// The exporter merged the scales of equal norms: what training separates stays frozen.
TEST(Lora, WhatIsSeparatedStaysFrozenInTheFile) {
  Model model =
      onnx::load(std::string(GRAFT_SOURCE_DIR) + "/tests/training_cases/convnext_adamw/model.onnx");
  edit::add_lora(model, {.rank = 1});
  TrainStep step(model, {});
  Model file = onnx::parse(onnx::serialize(model));
  EXPECT_EQ(TrainStep(file, {}).parameter_names(), step.parameter_names());
  EXPECT_TRUE(std::ranges::all_of(step.parameter_names(), is_adapter));
}

TEST(Lora, TravelsAlone) {
  const testing::TempFolder folder;
  const auto path = folder.path() / "adapters.safetensors";
  Model model = encoder();
  edit::add_lora(model, {.pattern = ".*self_attn", .rank = 4, .alpha = 8.0, .seed = 1});
  train(model, 3);
  save_lora(model, path);
  const safetensors::Content content = safetensors::load(path);
  ASSERT_THAT(content.tensors, SizeIs(4));
  EXPECT_EQ(content.tensors[0].name, "base_model.model.enc.layers.0.self_attn.lora_A.weight");
  EXPECT_EQ(content.tensors[0].tensor.shape(), Shape({4, 32}));
  EXPECT_EQ(content.tensors[1].tensor.shape(), Shape({96, 4}));
  Model other = encoder();
  edit::apply_lora(other, load_lora(path));
  EXPECT_EQ(answer(other), answer(model));
  EXPECT_THAT(TrainStep(other, {}).parameter_names(), SizeIs(4));
}

TEST(Lora, OfPeftIsRead) {
  const testing::TempFolder folder;
  const auto path = folder.path() / "adapter_model.safetensors";
  const Tensor a = Tensor::full(DType::f32, {2, 32}, 1.0);
  const Tensor b = Tensor::full(DType::f32, {2, 2}, 1.0);
  safetensors::save(path, {.tensors = {{"base_model.model.out.lora_A.weight", a},
                                       {"base_model.model.out.lora_B.default.weight", b}}});
  const auto said = [&] { return load_lora(path).at(0).alpha; };
  EXPECT_THAT(error_of(said).what(), HasSubstr("does not say the alpha of layer 'out'"));
  std::ofstream(folder.path() / "adapter_config.json") << R"({"lora_alpha": 16, "r": 2})";
  EXPECT_EQ(said(), 16.0);
  EXPECT_EQ(load_lora(path, 3.0).at(0).alpha, 3.0);
  EXPECT_EQ(load_lora(path).at(0).layer, "out");
  safetensors::save(path, {.tensors = {{"classifier.weight", a}}});
  EXPECT_THAT(error_of(said).what(), HasSubstr("'classifier.weight' is no part of an adapter"));
  safetensors::save(path, {.tensors = {{"out.lora_A.weight", a}}});
  EXPECT_THAT(error_of(said).what(), HasSubstr("layer 'out' has no lora_B"));
}

/// y = x W^T + b, W of 8 bits with a scale a channel, between activations of 8 bits.
Model quantized_model() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  const auto constant = [&](const std::string& name, const Tensor& tensor) {
    return graph.add_initializer(name, tensor);
  };
  Value* const zero = constant("zero", Tensor::scalar<std::int8_t>(0));
  Value* const step = constant("step", Tensor::scalar(1.0F / 64));
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("N"), 8}});
  const auto node = [&](const char* op, const std::vector<Value*>& inputs, Attributes attributes) {
    return graph.add_node(op, "", inputs, {graph.unique_name("y")}, std::move(attributes))
        ->output();
  };
  Value* const rounded =
      node("DequantizeLinear", {node("QuantizeLinear", {x, step, zero}, {}), step, zero}, {});
  Tensor numbers = Tensor::empty(DType::i8, {4, 8});
  std::int8_t next = -60;
  for (std::int8_t& number : numbers.values<std::int8_t>())
    number = next = static_cast<std::int8_t>(next + 3);
  Value* const scales =
      constant("fc.scale", Tensor::from<float>({4}, {0.01F, 0.02F, 0.01F, 0.03F}));
  Value* const zeros = constant("fc.zero", Tensor::zeros(DType::i8, {4}));
  Value* const weight = node(
      "DequantizeLinear", {constant("fc.weight_quantized", numbers), scales, zeros}, {{"axis", 0}});
  Value* const bias = constant("fc.bias", Tensor::zeros(DType::f32, {4}));
  graph.add_output(node("Gemm", {rounded, weight, bias}, {{"transB", 1}}));
  return model;
}

TEST(Lora, TrainsBesideQuantizedWeightsWhichKeepTheirBits) {
  Model model = quantized_model();
  const std::vector<Tensor> frozen = test::snapshot(model);
  edit::add_lora(model, {.pattern = "fc", .rank = 2});
  TrainStep step(model, {.optimizer = Adam{.lr = 0.1F}});
  EXPECT_THAT(step.parameter_names(), ElementsAre("fc.lora_A.weight", "fc.lora_B.weight"));
  const Tensor x = test::random_tensor({16, 8}, 1);
  const Tensor labels = test::cyclic_labels(16, 4);
  const float first = step.run({x}, labels);
  float last = first;
  for (int i = 0; i < 20; ++i) last = step.run({x}, labels);
  EXPECT_LT(last, 0.8F * first);
  for (std::size_t i = 0; i < frozen.size(); ++i) {
    EXPECT_TRUE(equal_bits(model.graph().initializers()[i]->initializer(), frozen[i])) << i;
  }
  const auto answer = [&] {
    const Tensor y = Session(model).run({x}).at(0);
    const auto values = y.values<const float>();
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> apart = answer();
  edit::merge_lora(model);
  EXPECT_THAT(answer(), Pointwise(FloatNear(1e-5F), apart));
  EXPECT_EQ(model.graph().find("fc.weight_quantized"), nullptr);
}

TEST(Lora, AlphaKeepsItsDigits) {
  const testing::TempFolder folder;
  const auto path = folder.path() / "adapters.safetensors";
  Model model = encoder();
  edit::add_lora(model, {.pattern = ".*self_attn", .rank = 4, .alpha = 12345678.0, .seed = 1});
  save_lora(model, path);
  EXPECT_EQ(load_lora(path).at(0).alpha, edit::lora_adapters(model).at(0).alpha);
}

}  // namespace
}  // namespace graft
