// Nets as exporters leave them, repaired, against what PyTorch makes of the nets that were meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/graph/frozen.h"
#include "core/layers/lora.h"
#include "core/layers/repair.h"
#include "core/ops/builder.h"
#include "core/runtime/session.h"
#include "data/tensor_dataset.h"
#include "io/onnx.h"
#include "tests/core/error_of.h"
#include "tests/train/nets.h"
#include "train/copies.h"
#include "train/train_step.h"
#include "train/unfuse_norms.h"

namespace graft {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr float kClose = 2e-5F;

const json& cases() {
  static const json all =
      json::parse(std::ifstream(std::string(GRAFT_SOURCE_DIR) + "/tests/oracles/repairs.json"));
  return all;
}

Tensor tensor_of(const json& from) {
  return Tensor::from(Shape(from.at("shape").get<std::vector<std::int64_t>>()),
                      from.at("values").get<std::vector<float>>());
}

/// Batches of samples of that shape.
struct Batches {
  Batches(const std::string& name, const Shape& shape, std::int64_t batch) {
    const json& from = cases().at("batches").at(name);
    const auto x = from.at("x").get<std::vector<float>>();
    const auto y = from.at("y").get<std::vector<std::int64_t>>();
    const std::size_t size = static_cast<std::size_t>(shape.size() * batch);
    for (std::size_t i = 0; i < y.size() / static_cast<std::size_t>(batch); ++i) {
      std::vector<std::int64_t> dims{batch};
      dims.insert(dims.end(), shape.begin(), shape.end());
      inputs.push_back(Tensor::from(Shape(dims), std::span(x).subspan(i * size, size)));
      const auto count = static_cast<std::size_t>(batch);
      targets.push_back(Tensor::from({batch}, std::span(y).subspan(i * count, count)));
    }
  }
  std::vector<Tensor> inputs;
  std::vector<Tensor> targets;
};

const Batches& rows() {
  static const Batches batches("rows", {6}, 5);
  return batches;
}
const Batches& images() {
  static const Batches batches("images", {2, 5, 5}, 6);
  return batches;
}

/// Layers by PyTorch's numbers, with the weights of these names.
class Net {
 public:
  Net(const json& weights, const SymShape& input) : weights_(weights) {
    model_.set_opset("", 17);
    y_ = builder_.expr(graph().add_input("x", {DType::f32, input}));
  }
  Net& op(const std::string& op, const std::string& number, const std::vector<std::string>& parts,
          Attributes attributes = {}) {
    std::vector<Expr> inputs{y_};
    for (const std::string& part : parts) {
      const std::string name = number + '.' + part;
      inputs.push_back(builder_.expr(graph().add_initializer(name, tensor_of(weights_.at(name)))));
    }
    y_ = call(op, inputs, std::move(attributes));
    return *this;
  }
  Model take() {
    graph().add_output(y_.value());
    return std::move(model_);
  }

 private:
  Graph& graph() { return model_.graph(); }
  const json& weights_;
  Model model_;
  Builder builder_{model_.graph()};
  Expr y_;
};

Model conv_net(const json& weights, bool has_norms) {
  const std::vector<std::string> layer{"weight", "bias"};
  const std::vector<std::string> norm{"weight", "bias", "running_mean", "running_var"};
  Net net(weights, {Dim("N"), 2, 5, 5});
  net.op("Conv", "0", layer);
  if (has_norms) net.op("BatchNormalization", "1", norm);
  net.op("Relu", "", {}).op("Conv", "3", layer);
  if (has_norms) net.op("BatchNormalization", "4", norm);
  return net.op("Relu", "", {})
      .op("Flatten", "", {})
      .op("Gemm", "7", layer, {{"transB", 1}})
      .take();
}

std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.values<const float>();
  return {values.begin(), values.end()};
}

std::vector<float> answer(const Model& model, const Tensor& x) {
  return values_of(Session(model).run({x}).at(0));
}

void expect_near(const std::vector<float>& found, const json& wanted, const std::string& what) {
  const auto numbers = wanted.get<std::vector<float>>();
  ASSERT_EQ(found.size(), numbers.size()) << what;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_NEAR(found[i], numbers[i], kClose) << what << ' ' << i;
  }
}

/// Trains as PyTorch did; each loss, and the answer at the end, must be PyTorch's.
void expect_trajectory(Model& model, const json& wanted, const Batches& batches,
                       const Optimizer& optimizer) {
  TrainStep step(model, {.optimizer = optimizer});
  std::vector<float> losses;
  for (std::size_t i = 0; i < batches.inputs.size(); ++i) {
    losses.push_back(step.run({batches.inputs[i]}, batches.targets[i]));
  }
  expect_near(losses, wanted.at("losses"), "loss");
  expect_near(answer(model, batches.inputs[0]), wanted.at("answer"), "answer");
}

void expect_weight(const Model& model, const std::string& name, const json& wanted) {
  const Value* const value = model.graph().find(name);
  ASSERT_NE(value, nullptr) << name;
  expect_near(values_of(value->initializer()), wanted.at("values"), name);
}

TEST(Repairs, AdaptersTrainAsPyTorchs) {
  const json& wanted = cases().at("lora");
  Model model = Net(wanted.at("first"), {Dim("N"), 6})
                    .op("Gemm", "0", {"weight", "bias"}, {{"transB", 1}})
                    .op("Tanh", "", {})
                    .op("Gemm", "2", {"weight", "bias"}, {{"transB", 1}})
                    .take();
  const std::vector<float> before = answer(model, rows().inputs[0]);
  edit::add_lora(model, {.rank = 2, .alpha = 4.0});
  EXPECT_EQ(answer(model, rows().inputs[0]), before);
  for (const std::string name : {"0.lora_A.weight", "2.lora_A.weight"}) {
    model.graph().find(name)->set_initializer(tensor_of(wanted.at("first").at(name)));
  }
  expect_trajectory(model, wanted, rows(), AdamW{.lr = 3e-2F});
  for (const std::string name : {"0.lora_A.weight", "0.lora_B.weight", "2.lora_B.weight"}) {
    expect_weight(model, name, wanted.at("last").at(name));
  }
  expect_weight(model, "0.weight", wanted.at("first").at("0.weight"));
}

/// The images that PyTorch calibrated with.
DataLoader calibration_data() {
  std::vector<float> all;
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < images().inputs.size(); ++i) {
    const auto x = images().inputs[i].values<const float>();
    const auto y = images().targets[i].values<const std::int64_t>();
    all.insert(all.end(), x.begin(), x.end());
    labels.insert(labels.end(), y.begin(), y.end());
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  return DataLoader(tensor_dataset({{"x", Tensor::from({count, 2, 5, 5}, all)}},
                                   {"y", Tensor::from({count}, labels)}),
                    {.batch = 7});
}

TEST(Repairs, FoldedNormsComeBackCalibrated) {
  const json& wanted = cases().at("unfuse");
  Model model = conv_net(wanted.at("first"), false);
  expect_near(answer(model, images().inputs[0]), wanted.at("before"), "folded");
  DataLoader data = calibration_data();
  const UnfusedNorms done = unfuse_norms(model, "", data);
  EXPECT_THAT(done.layers, ElementsAre("0", "3"));
  EXPECT_THAT(done.left_out, IsEmpty());
  expect_near(answer(model, images().inputs[0]), wanted.at("before"), "calibrated");
  expect_trajectory(model, wanted, images(), SGD{.lr = 0.05F, .momentum = 0.9F});
  expect_weight(model, "0.norm.weight", wanted.at("last").at("1.weight"));
  expect_weight(model, "0.norm.running_mean", wanted.at("last").at("1.running_mean"));
  expect_weight(model, "3.norm.running_var", wanted.at("last").at("4.running_var"));
}

TEST(Repairs, FoldedNormsAreNotPutWhereTheyCannotBe) {
  Model model = conv_net(cases().at("norms_train").at("first"), true);
  DataLoader data = calibration_data();
  EXPECT_THAT(error_of([&] { unfuse_norms(model, "", data); }).what(),
              HasSubstr("no layer can have a BatchNormalization: Conv node producing "));
  EXPECT_THAT(error_of([&] { unfuse_norms(model, "9", data); }).what(),
              HasSubstr("no layer is meant; there are: '0', '3', '7'"));
  EXPECT_THAT(unfuse_norms(model, "7", data).layers, ElementsAre("7"));
}

/// One number may be the bias of all channels of a Gemm.
TEST(Repairs, ANormTakesABiasOfAllChannels) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}}));
  const Expr w = builder.expr(graph.add_initializer("w", Tensor::zeros(DType::f32, {2, 100})));
  const Expr b = builder.expr(graph.add_initializer("b", Tensor::from<float>({1}, {0.5F})));
  graph.add_output(call("Relu", {call("Gemm", {x, w, b})}).value());
  DataLoader data(tensor_dataset({{"x", Tensor::zeros(DType::f32, {4, 2})}},
                                 {"y", Tensor::zeros(DType::i64, {4})}),
                  {.batch = 2});
  unfuse_norms(model, ".*", data);
  std::int64_t means = 0;
  for (const Value* value : graph.initializers()) {
    if (!value->name().ends_with(".running_mean")) continue;
    for (const float mean : value->initializer().values<const float>()) means += mean == 0.0F;
  }
  EXPECT_EQ(means, 100);
}

TEST(Repairs, ChannelsWithoutElementsCalibrateNothing) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 1, 0}}));
  const Expr w = builder.expr(graph.add_initializer("w", Tensor::zeros(DType::f32, {1, 1, 1})));
  graph.add_output(call("Relu", {call("Conv", {x, w}, {{"auto_pad", "SAME_UPPER"}})}).value());
  DataLoader data(tensor_dataset({{"x", Tensor::zeros(DType::f32, {4, 1, 0})}},
                                 {"y", Tensor::zeros(DType::i64, {4})}),
                  {.batch = 2});
  EXPECT_EQ(error_of([&] { unfuse_norms(model, ".*", data); }).kind(), ErrorKind::numeric);
}

class NormPolicies : public ::testing::TestWithParam<std::string> {};

TEST_P(NormPolicies, TrainAsInPyTorchAlsoFromAFile) {
  const json& wanted = cases().at("norms_" + GetParam());
  Model model = conv_net(wanted.at("first"), true);
  edit::set_norms(model, ".*", edit::norm_policy("fixed"));  // must not be in the way
  EXPECT_THAT(edit::set_norms(model, "[14]", edit::norm_policy(GetParam())), ElementsAre("1", "4"));
  Model file = onnx::parse(onnx::serialize(model));
  for (Model* one : {&model, &file}) {
    expect_trajectory(*one, wanted, images(), SGD{.lr = 0.05F, .momentum = 0.9F});
    for (const std::string name : {"1.weight", "1.running_mean", "4.running_var"}) {
      expect_weight(*one, name, wanted.at("last").at(name));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Repairs, NormPolicies, ::testing::Values("train", "fixed", "frozen"),
                         [](const auto& policy) { return policy.param; });

/// A GPT whose exporter wrote the embedding and its transpose.
TEST(Repairs, TiedCopiesTrainAsPyTorchsOneParameter) {
  const std::string folder =
      std::string(GRAFT_SOURCE_DIR) + "/tests/training_cases/gpt_tied_adamw/";
  const json record = json::parse(std::ifstream(folder + "training.json"));
  Model model = onnx::load(folder + "model.onnx");
  const std::vector<Tie> ties = tie_copies(model);
  ASSERT_THAT(ties, SizeIs(1));
  EXPECT_EQ(ties[0].leader, "tok.weight");
  EXPECT_EQ(ties[0].follower, "t");
  EXPECT_TRUE(ties[0].transposed);
  EXPECT_EQ(model.graph().find("t"), nullptr);
  model = onnx::parse(onnx::serialize(model));
  EXPECT_THAT(tie_copies(model), IsEmpty());
  const json& settings = record.at("optimizer");
  TrainStep step(model,
                 {.loss = token_cross_entropy(),
                  .optimizer = AdamW{.lr = settings.at("lr").get<float>(),
                                     .weight_decay = settings.at("weight_decay").get<float>()}});
  const auto wanted = record.at("losses").get<std::vector<float>>();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string stem = folder + "test_data_set_0/step_" + std::to_string(i);
    const float loss = step.run({onnx::load_tensor(stem + "_input_0.pb").tensor},
                                onnx::load_tensor(stem + "_target_0.pb").tensor);
    EXPECT_NEAR(loss, wanted[i], 1e-3F * wanted[i]) << i;
  }
}

/// x w1 w2 with x [2,8]; after w1 a Dropout, if the exporter has left it.
Model two_products(std::int64_t opset, bool has_dropout) {
  Model model;
  model.set_opset("", opset);
  Graph& graph = model.graph();
  const auto weight = [&](const std::string& name, std::uint64_t seed) {
    return graph.add_initializer(name, test::random_tensor({8, 8}, seed));
  };
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2, 8}});
  Value* hidden = graph.add_node("MatMul", "", {x, weight("w1", 1)}, {"hidden"})->output();
  if (has_dropout) {
    Value* const ratio = graph.add_initializer("ratio", Tensor::scalar(0.25F));
    hidden = graph.add_node("Dropout", "", {hidden, ratio}, {"dropped"})->output();
  }
  graph.add_output(graph.add_node("MatMul", "", {hidden, weight("w2", 2)}, {"y"})->output());
  return model;
}

std::vector<float> losses(Model& model) {
  TrainStep step(model, {.loss = mse(), .optimizer = SGD{.lr = 0.05F}, .seed = 3});
  std::vector<float> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(step.run({test::random_tensor({2, 8}, 4)}, Tensor::zeros(DType::f32, {2, 8})));
  }
  return all;
}

TEST(Repairs, DropoutIsAsIfTheExporterHadLeftIt) {
  const Tensor x = test::random_tensor({2, 8}, 4);
  Model left = two_products(17, true);
  Model bare = two_products(17, false);
  const std::vector<float> wanted = losses(left);
  EXPECT_NE(losses(bare), wanted);
  for (const std::int64_t opset : {10, 17}) {
    Model model = two_products(opset, false);
    const std::vector<float> before = answer(model, x);
    EXPECT_THAT(edit::insert_dropout(model, "hidden", 0.25F), ElementsAre("hidden"));
    EXPECT_EQ(answer(model, x), before) << "it draws in training only";
    model = onnx::parse(onnx::serialize(model));
    EXPECT_EQ(losses(model), wanted) << opset;
  }
}

TEST(Repairs, DropoutRefusesSharesAndPatternsThatMakeNoSense) {
  Model model = two_products(17, false);
  EXPECT_THAT(error_of([&] { edit::insert_dropout(model, "hidden", 1.0F); }).what(),
              HasSubstr("the ratio is 1, wanted 0 to below 1"));
  EXPECT_THAT(error_of([&] { edit::insert_dropout(model, "hid", 0.5F); }).what(),
              HasSubstr("'hid' matches none of 2 nodes"));
  EXPECT_THAT(error_of([&] { edit::set_norms(model, ".*", edit::NormPolicy::fixed); }).what(),
              HasSubstr("matches none of 0 BatchNormalizations"));
  EXPECT_THAT(error_of([&] { edit::norm_policy("eval"); }).what(),
              HasSubstr("valid here: train, fixed, frozen"));
}

TEST(Repairs, ProbabilitiesAreStrippedBehindWhatMovesThem) {
  Model model = two_products(17, false);
  Graph& graph = model.graph();
  const std::vector<float> logits = answer(model, test::random_tensor({2, 8}, 4));
  Value* const y = graph.outputs()[0];
  Value* const shares = graph.add_node("Softmax", "", {y}, {"shares"})->output();
  Value* const flat = graph.add_node("Flatten", "", {shares}, {"flat"}, {{"axis", 0}})->output();
  Value* const odds = graph.add_node("Sigmoid", "", {graph.find("hidden")}, {"odds"})->output();
  graph.set_outputs({flat, odds, graph.find("hidden")});
  EXPECT_THAT(edit::strip_probabilities(model), SizeIs(2));
  EXPECT_THAT(graph.outputs(), ElementsAre(flat, graph.find("hidden")));
  EXPECT_EQ(answer(model, test::random_tensor({2, 8}, 4)), logits);
  EXPECT_THAT(edit::strip_probabilities(model), IsEmpty());
}

}  // namespace
}  // namespace graft
