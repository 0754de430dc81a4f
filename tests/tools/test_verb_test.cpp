#include <gmock/gmock.h>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/ops/builder.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

class TestVerb : public ToolTest {
 protected:
  /// A backend test of y = x + x for x = 1, 2; `wanted` is what it expects, nothing when not
  /// defined.
  void write_case(const std::string& name, const Tensor& wanted) const {
    const std::filesystem::path data = folder_.path() / name / "test_data_set_0";
    std::filesystem::create_directories(data);
    Model model;
    model.ir_version = 8;
    model.set_opset("", 17);
    Value* const x = model.graph().add_input("x", {DType::f32, SymShape{2}});
    Builder builder(model.graph());
    model.graph().add_output(
        builder.node("Add", "", {x, x}, std::vector<std::string>{"y"})->output());
    onnx::save(model, folder_.path() / name / "model.onnx");
    onnx::save_tensor(data / "input_0.pb", Tensor::from<float>({2}, {1, 2}), "x");
    if (wanted.defined()) onnx::save_tensor(data / "output_0.pb", wanted, "y");
  }
};

TEST_F(TestVerb, ComparesOutputs) {
  write_case("a_right", Tensor::from<float>({2}, {2, 4.003F}));  // within 1e-3
  write_case("b_wrong", Tensor::from<float>({2}, {2, 4.005F}));
  write_case("c_type", Tensor::from<double>({2}, {2, 4}));
  write_case("d_shape", Tensor::from<float>({1, 2}, {2, 4}));
  write_case("e_none", {});
  const Outcome outcome = run_graft({"test", folder_.path().string()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("passed  " + path("a_right") + "\n"));
  EXPECT_THAT(outcome.out, HasSubstr("failed  " + path("b_wrong") +
                                     ": test_data_set_0: output 'y': 1 of 2 elements differ; "
                                     "element 1 is 4, wanted 4.00500011\n"));
  EXPECT_THAT(outcome.out, HasSubstr("output 'y' is f32[2], wanted f64[2]"));
  EXPECT_THAT(outcome.out, HasSubstr("output 'y' is f32[2], wanted f32[1,2]"));
  EXPECT_THAT(outcome.out, HasSubstr("skipped  " + path("e_none")));
  EXPECT_THAT(outcome.out, EndsWith("\n1 passed, 3 failed, 1 skipped\n"));
}

TEST_F(TestVerb, PassesWhenAllPass) {
  write_case("right", Tensor::from<float>({2}, {2, 4}));
  const Outcome outcome = run_graft({"test", path("right")});
  EXPECT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, EndsWith("1 passed, 0 failed, 0 skipped\n"));
}

TEST_F(TestVerb, TakesOtherTolerances) {
  write_case("rough", Tensor::from<float>({2}, {2, 4.005F}));
  EXPECT_THAT(run_graft({"test", path("rough"), "--rtol", "0.01"}), Succeeds());
  EXPECT_THAT(run_graft({"test", path("rough"), "--atol", "0.01"}), Succeeds());
}

TEST_F(TestVerb, ShapesMayBeInputs) {
  const std::filesystem::path data = folder_.path() / "expand" / "test_data_set_0";
  std::filesystem::create_directories(data);
  Model model;
  model.ir_version = 8;
  model.set_opset("", 17);
  Value* const x = model.graph().add_input("x", {DType::f32, SymShape{2}});
  Value* const shape = model.graph().add_input("shape", {DType::i64, SymShape{2}});
  Builder builder(model.graph());
  model.graph().add_output(
      builder.node("Expand", "", {x, shape}, std::vector<std::string>{"y"})->output());
  onnx::save(model, folder_.path() / "expand" / "model.onnx");
  onnx::save_tensor(data / "input_0.pb", Tensor::from<float>({2}, {7, 8}), "x");
  onnx::save_tensor(data / "input_1.pb", Tensor::from<std::int64_t>({2}, {2, 2}), "shape");
  onnx::save_tensor(data / "output_0.pb", Tensor::from<float>({2, 2}, {7, 8, 7, 8}), "y");
  const Outcome outcome = run_graft({"test", path("expand")});
  EXPECT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("passed  " + path("expand") + "\n"));
}

TEST_F(TestVerb, ACaseThatCannotRunFailsWithItsReason) {
  write_case("broken", Tensor::from<float>({2}, {2, 4}));
  folder_.write("broken/model.onnx", "nonsense");
  const Outcome outcome = run_graft({"test", path("broken")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("failed  " + path("broken") + ": model: "));
}

TEST_F(TestVerb, FolderWithoutCases) {
  EXPECT_THAT(run_graft({"test", folder_.path().string()}), FailsWith(2, "no model.onnx"));
  EXPECT_THAT(run_graft({"test", path("absent")}), FailsWith(2, "absent"));
}

/// Models that skl2onnx made from scikit-learn's, with onnxruntime's answers.
TEST_F(TestVerb, ClassicalModelsAgreeWithOnnxruntime) {
  const std::filesystem::path folder =
      std::filesystem::path(GRAFT_SOURCE_DIR) / "tests" / "tools" / "ml_models";
  const Outcome outcome = run_graft({"test", folder.string()});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.error;
}

/// Nets that PyTorch trained for some steps: tests/training_cases/README.md.
constexpr std::array kTrainingCases{"bert_adamw",
                                    "convnext_adamw",
                                    "crnn_ctc_adam",
                                    "efficientnet_adam",
                                    "gpt_tied_adamw",
                                    "gru_rmsprop",
                                    "mlp_huber_sgd",
                                    "mlp_mse_adagrad",
                                    "mobilenet_momentum",
                                    "resnet_groupnorm_nesterov",
                                    "resnet_momentum",
                                    "seed_vit_adam",
                                    "singa_cnn_sgd",
                                    "squeezenet_sgd",
                                    "tutorial_net_momentum",
                                    "unet_bce_adam",
                                    "vit_adam",
                                    "vit_script_adam"};

TEST(TrainingCases, EachFolderHasATest) {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(training_cases())) {
    if (entry.is_directory()) folders.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(folders, ::testing::UnorderedElementsAreArray(kTrainingCases));
}

class TrainingCase : public ::testing::TestWithParam<const char*> {};

TEST_P(TrainingCase, Agrees) {
  const std::filesystem::path folder = training_cases() / GetParam();
  const Outcome outcome = run_graft({"test", folder.string()});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.error;
  EXPECT_THAT(outcome.out, EndsWith("1 passed, 0 failed, 0 skipped\n"));
}

/// PyTorch trained the same.
TEST_P(TrainingCase, ItsParametersTrainByDefault) {
  const std::filesystem::path folder = training_cases() / GetParam();
  const Outcome outcome = run_graft({"inspect", (folder / "model.onnx").string(), "--json"});
  ASSERT_THAT(outcome, Succeeds());
  std::vector<std::string> names;
  const nlohmann::json inspected = nlohmann::json::parse(outcome.out);
  for (const auto& parameter : inspected.at("trainable")) {
    names.push_back(parameter.at("name"));
  }
  std::ifstream record(folder / "training.json");
  const std::vector<std::string> wanted = nlohmann::json::parse(record).at("trainable");
  EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(wanted));
}

INSTANTIATE_TEST_SUITE_P(All, TrainingCase, ::testing::ValuesIn(kTrainingCases),
                         [](const auto& one) { return std::string(one.param); });

/// A copy of a training case in which one thing is wrong: the comparison must see it.
class WrongTrainingCase : public ToolTest {
 protected:
  void SetUp() override {
    std::filesystem::copy(training_cases() / "mlp_huber_sgd", folder_.path() / "case",
                          std::filesystem::copy_options::recursive);
  }

  void expect_failure(const std::string& part) const {
    const Outcome outcome = run_graft({"test", path("case")});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.out, HasSubstr(part));
  }

  /// Replaces text in training.json.
  void replace(const std::string& from, const std::string& to) const {
    std::string json = read("case/training.json");
    const std::size_t at = json.find(from);
    ASSERT_NE(at, std::string::npos) << json;
    folder_.write("case/training.json", json.replace(at, from.size(), to));
  }

  /// Adds to the first element of a tensor's file.
  void shift(const std::string& file, float by) const {
    const std::filesystem::path at = folder_.path() / "case" / "test_data_set_0" / file;
    const NamedTensor named = onnx::load_tensor(at);
    named.tensor.values<float>()[0] += by;
    onnx::save_tensor(at, named.tensor, named.name);
  }
};

TEST_F(WrongTrainingCase, Loss) {
  replace("0.46605", "0.48605");
  expect_failure("loss of step 0 is 0.466");
}

TEST_F(WrongTrainingCase, Rate) {
  replace("0.05", "0.06");
  expect_failure("loss of step 1");
}

TEST_F(WrongTrainingCase, Gradient) {
  shift("gradient_1.pb", 0.01F);
  expect_failure("gradient of '");
}

TEST_F(WrongTrainingCase, OutputBeforeAndAfter) {
  shift("trained_output_0.pb", 0.01F);
  expect_failure("trained output: 1 of ");
  shift("output_0.pb", 0.01F);
  expect_failure("output before training: 1 of ");
}

TEST_F(WrongTrainingCase, UnknownSettings) {
  replace("\"lr\"", "\"foreach\": true, \"lr\"");
  expect_failure("optimizer sgd has no foreach setting");
  folder_.write("case/training.json", "{");
  expect_failure("training.json");
}

}  // namespace
}  // namespace graft::testing
