#include <gtest/gtest.h>

#include <cmath>

#include "core/layers/nets.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

/// Losses of `steps` steps on one batch.
std::vector<float> losses(Model& model, Precision precision, int steps) {
  TrainStep step(model, {.optimizer = SGD{.lr = 0.02F, .momentum = 0.9F}, .precision = precision});
  const Tensor x = test::random_tensor({12, 3, 16, 16}, 3);
  const Tensor labels = test::cyclic_labels(12, 4);
  std::vector<float> result;
  for (int i = 0; i < steps; ++i) result.push_back(step.run({x}, labels));
  EXPECT_EQ(step.prediction().dtype(), DType::f32);
  return result;
}

TEST(Precision, Bf16TrainsAsF32DoesAndLeavesParametersInF32) {
  constexpr int kSteps = 12;
  Model exact = make_net("resnet20", Shape{3, 16, 16}, 4, 1);
  Model rounded = exact.clone();
  for (Value* value : rounded.graph().initializers()) {
    value->set_initializer(value->initializer().clone());
  }
  const std::vector<float> wanted = losses(exact, Precision::f32, kSteps);
  const std::vector<float> is = losses(rounded, Precision::bf16, kSteps);
  EXPECT_NE(is.front(), wanted.front());
  EXPECT_NEAR(is.front(), wanted.front(), 0.01F * wanted.front());
  EXPECT_LT(wanted.back(), 0.3F * wanted.front());
  EXPECT_LT(is.back(), 0.3F * is.front());
  for (const Value* value : rounded.graph().initializers()) {
    if (is_float(value->dtype())) {
      EXPECT_EQ(value->dtype(), DType::f32) << value->name();
    }
  }
}

}  // namespace
}  // namespace graft
