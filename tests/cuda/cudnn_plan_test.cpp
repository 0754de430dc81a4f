// What the convolutions of nets ask of cuDNN, asked of the real library for a card that is not
// here. tests/cuda/h100.json describes that card as cuDNN would write it; its numbers are the data
// sheet's.
#include "core/device/cuda/cudnn_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "core/device/cuda/cudnn.h"
#include "core/device/cuda/emulated/convolution.h"
#include "core/layers/nets.h"
#include "tests/cuda/on_card.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

using test::card;

std::string h100() {
  std::ifstream file(std::filesystem::path(GRAFT_SOURCE_DIR) / "tests/cuda/h100.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string describe(const Convolution& c) {
  const auto list = [](const std::vector<std::int64_t>& values) {
    std::string words;
    for (const std::int64_t value : values) words += (words.empty() ? "" : "x") + text(value);
    return words;
  };
  constexpr const char* kParts[] = {"forward", "input gradient", "weight gradient"};
  return text(kParts[static_cast<int>(c.part)], " of x ", list(c.x), ", w ", list(c.w),
              ", strides ", list(c.strides), ", pads ", list(c.pads_begin), " and ",
              list(c.pads_end), c.type == Convolution::Type::bf16 ? ", bf16" : ", f32",
              c.allows_tf32 ? ", tf32" : "", c.is_channels_last ? ", channels-last" : "",
              c.adds ? ", adds" : "");
}

/// Training steps of the nets are planned, none runs.
std::set<Convolution> convolutions_of_nets() {
  const std::size_t before = emulated::planned_convolutions().size();
  for (const auto& [net, image] :
       {std::pair{"lenet", Shape{1, 28, 28}}, std::pair{"resnet18", Shape{3, 32, 32}},
        std::pair{"resnet20", Shape{3, 32, 32}}, std::pair{"mobilenetv2", Shape{3, 64, 64}}}) {
    Model model = make_net(net, image, 10, 1);
    TrainStep step(model, {.optimizer = SGD{.lr = 0.1F}, .device = "cuda:emulated"});
    const Shape batch{16, image[0], image[1], image[2]};
    step.plan({Tensor::zeros(DType::f32, batch)}, test::cyclic_labels(16, 10));
  }
  const auto& all = emulated::planned_convolutions();
  return {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()};
}

class CudnnPlans : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cudnn() == nullptr) GTEST_SKIP() << describe_cudnn();
  }

  static void expect_plan(const Convolution& convolution) {
    std::string why;
    const auto plan = CudnnPlan::make(convolution, {.properties = h100()}, &why);
    EXPECT_NE(plan, nullptr) << describe(convolution) << ": " << why;
  }
};

TEST_F(CudnnPlans, EveryConvolutionOfTheNetsInEachPrecision) {
  const std::set<Convolution> all = convolutions_of_nets();
  std::size_t by_part[3] = {};
  for (Convolution convolution : all) {
    ++by_part[static_cast<std::size_t>(convolution.part)];
    expect_plan(convolution);
    convolution.allows_tf32 = true;
    expect_plan(convolution);
    convolution.allows_tf32 = false;
    convolution.type = Convolution::Type::bf16;
    convolution.is_channels_last = true;
    expect_plan(convolution);
  }
  for (const std::size_t count : by_part) EXPECT_GE(count, 30U);
}

/// The engine that is named first for these takes 1.5 GB.
TEST_F(CudnnPlans, LargeImagesTakeTheUsualMemory) {
  Convolution convolution{.allows_tf32 = true,
                          .x = {64, 64, 224, 224},
                          .w = {64, 64, 3, 3},
                          .y = {64, 64, 224, 224},
                          .strides = {1, 1},
                          .dilations = {1, 1},
                          .pads_begin = {1, 1},
                          .pads_end = {1, 1}};
  for (const auto part : {Convolution::Part::forward, Convolution::Part::input_gradient,
                          Convolution::Part::weight_gradient}) {
    convolution.part = part;
    const auto plan = CudnnPlan::make(convolution, {.properties = h100()});
    ASSERT_NE(plan, nullptr);
    EXPECT_LE(plan->workspace_bytes(), std::size_t{256} << 20) << describe(convolution);
  }
}

TEST_F(CudnnPlans, AnImpossibleOneIsRefusedWithTheReason) {
  Convolution convolution{.x = {2, 3, 8, 8},
                          .w = {4, 3, 3, 3},
                          .y = {2, 4, 5, 5},  // wanted 6 x 6
                          .strides = {1, 1},
                          .dilations = {1, 1},
                          .pads_begin = {0, 0},
                          .pads_end = {0, 0}};
  std::string why;
  EXPECT_EQ(CudnnPlan::make(convolution, {.properties = h100()}, &why), nullptr);
  EXPECT_THAT(why, testing::HasSubstr("CUDNN_STATUS_"));
  convolution.y = {2, 4, 6, 6};
  expect_plan(convolution);
  EXPECT_EQ(CudnnPlan::make(convolution, {.properties = "{}"}, &why), nullptr)
      << "planned for a card that nothing is known of";
}

}  // namespace
}  // namespace graft
