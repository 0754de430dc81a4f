// Real models, with what onnxruntime recorded of them (the README beside them says where they are
// from): each imports, agrees within 1e-4, and inspect says what would train by default.
#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

struct SharedModel {
  std::string folder;
  /// Nodes that stop their gradients.
  std::size_t blockers = 0;
  /// Part of why there is no estimate of the memory; empty when there is one.
  std::string obstacle = "";
};

void PrintTo(const SharedModel& one, std::ostream* out) {
  *out << one.folder;
}

/// Of what trains, as `inspect --json` lists it.
std::vector<std::string> names_in(const nlohmann::json& trainable) {
  std::vector<std::string> names;
  for (const auto& parameter : trainable) names.push_back(parameter.at("name"));
  return names;
}

/// What trains by default, from the list beside this file.
std::vector<std::string> trainable_names(const std::string& folder) {
  std::ifstream file(std::filesystem::path(GRAFT_SOURCE_DIR) / "tests" / "tools" /
                     "trainable_names.json");
  return nlohmann::json::parse(file).at(folder);
}

class SharedModels : public ::testing::TestWithParam<SharedModel> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder())) GTEST_SKIP() << folder() << " is not there";
  }

  static std::string folder() { return (shared_folder() / "models" / GetParam().folder).string(); }
};

TEST_P(SharedModels, AgreesWithWhatWasRecorded) {
  const Outcome outcome = run_graft({"test", "--atol", "1e-4", "--rtol", "1e-4", folder()});
  EXPECT_THAT(outcome, Succeeds()) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("1 passed, 0 failed, 0 skipped"));
}

TEST_P(SharedModels, InspectSaysWhatTrains) {
  const Outcome outcome = run_graft({"inspect", folder() + "/model.onnx", "--json"});
  const auto found = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(outcome.code, found["can_train"] ? 0 : 2) << outcome.error;
  EXPECT_EQ(names_in(found["trainable"]), trainable_names(GetParam().folder));
  EXPECT_EQ(found["blockers"].size(), GetParam().blockers) << found["blockers"];
  for (const auto& blocker : found["blockers"]) {
    EXPECT_THAT(blocker.get<std::string>(), HasSubstr("If node '/model/"));
    EXPECT_THAT(blocker.get<std::string>(), HasSubstr("its condition depends on data"));
  }
  EXPECT_THAT(found.value("obstacle", ""), HasSubstr(GetParam().obstacle));
  EXPECT_EQ(found.contains("obstacle"), !GetParam().obstacle.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, SharedModels,
    ::testing::Values(
        SharedModel{"efficientnet_lite0_imagenet_tr13"},  // five-output BatchNormalization
        SharedModel{"efficientnet_lite0_imagenet_ts13"},
        SharedModel{"logreg_iris", 0, "nothing to train"},
        SharedModel{"ppocr_cls_v2", 0, "'x' f32[?,3,?,?] is not known"},  // Constant nodes
        SharedModel{"ppocrv4_det", 0, "p2o.DynamicDimension.1"},
        SharedModel{"silero_vad_16k_op15", 3, "'input' f32[batch,sequence] is not known"},
        SharedModel{"silero_vad_16k_sequence"},
        SharedModel{"silero_vad_openvino_16k"},  // weights in an If whose condition is known
        SharedModel{"super_resolution_op13"}, SharedModel{"surfaces_decision_tree_classifier"},
        SharedModel{"surfaces_k_neighbors_classifier_validity", 0, "nothing to train"},
        SharedModel{"ultraface_version_RFB_320"},  // initializers listed as inputs
        SharedModel{"ultraface_version_slim_320"}, SharedModel{"wonnx_opt_mnist"}),
    [](const auto& one) { return one.param.folder; });

/// IR 1 without an opset import: no runtime takes it, since its ops may mean anything.
TEST(SharedModel, WithoutAnOpsetIsRefused) {
  const auto folder = shared_folder() / "models" / "super_resolution";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  EXPECT_THAT(run_graft({"inspect", (folder / "model.onnx").string()}),
              FailsWith(2,
                        "the model (ir_version 1) imports no opset, so what its ops mean is not "
                        "said"));
}

}  // namespace
}  // namespace graft::testing
