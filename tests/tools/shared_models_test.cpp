// Real models, with what onnxruntime recorded of them (the README beside them says where they are
// from): each imports, agrees within 1e-4, and inspect says what would train.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/tool_test.h"

namespace graft {
namespace {

using testing::FailsWith;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::run_graft;
using testing::Succeeds;

struct SharedModel {
  std::string folder;
  /// Parameters that train by default.
  std::size_t trainable;
  /// Nodes that stop their gradients.
  std::size_t blockers = 0;
  /// Part of why there is no estimate of the memory; empty when there is one.
  std::string obstacle = "";
};

void PrintTo(const SharedModel& one, std::ostream* out) {
  *out << one.folder;
}

class SharedModels : public ::testing::TestWithParam<SharedModel> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder())) GTEST_SKIP() << folder() << " is not there";
  }

  static std::string folder() {
    return (testing::shared_folder() / "models" / GetParam().folder).string();
  }
};

TEST_P(SharedModels, AgreesWithWhatWasRecorded) {
  const Outcome outcome = run_graft({"test", "--atol", "1e-4", "--rtol", "1e-4", folder()});
  EXPECT_THAT(outcome, Succeeds()) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("1 passed, 0 failed, 0 skipped"));
}

TEST_P(SharedModels, InspectSaysWhatTrains) {
  const Outcome outcome = run_graft({"inspect", folder() + "/model.onnx", "--json"});
  ASSERT_THAT(outcome, Succeeds());
  const auto found = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(found["trainable"].size(), GetParam().trainable);
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
        SharedModel{"efficientnet_lite0_imagenet_tr13", 149},  // five-output BatchNormalization
        SharedModel{"efficientnet_lite0_imagenet_ts13", 100},
        SharedModel{"logreg_iris", 0, 0, "nothing to train"},
        SharedModel{"ppocr_cls_v2", 143, 0, "'x' f32[?,3,?,?] is not known"},  // Constant nodes
        SharedModel{"ppocrv4_det", 176, 0, "p2o.DynamicDimension.1"},
        SharedModel{"silero_vad_16k_op15", 15, 3, "'input' f32[batch,sequence] is not known"},
        SharedModel{"silero_vad_16k_sequence", 14},
        SharedModel{"silero_vad_openvino_16k", 15},  // weights in an If whose condition is known
        SharedModel{"super_resolution_op13", 8},
        SharedModel{"surfaces_decision_tree_classifier", 6},
        SharedModel{"surfaces_k_neighbors_classifier_validity", 0, 0, "nothing to train"},
        SharedModel{"ultraface_version_RFB_320", 142},  // initializers listed as inputs
        SharedModel{"ultraface_version_slim_320", 112}, SharedModel{"wonnx_opt_mnist", 6}),
    [](const auto& one) { return one.param.folder; });

/// IR 1 without an opset import: no runtime takes it, since its ops may mean anything.
TEST(SharedModel, WithoutAnOpsetIsRefused) {
  const auto folder = testing::shared_folder() / "models" / "super_resolution";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  EXPECT_THAT(run_graft({"inspect", (folder / "model.onnx").string()}),
              FailsWith(2,
                        "the model (ir_version 1) imports no opset, so what its ops mean is not "
                        "said"));
}

}  // namespace
}  // namespace graft
