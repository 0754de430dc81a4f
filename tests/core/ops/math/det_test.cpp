#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"
#include "tests/core/ops/rule_gradient.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using testing::floats;
using testing::rule_gradients;

TEST(Det, OneANumberEach) {
  const Tensor x = Tensor::from<float>({2, 2, 2}, {1, 2, 3, 4, 0, 1, 1, 0});
  const Tensor y = call_op("Det", {x})[0];
  EXPECT_EQ(y.shape(), Shape{2});
  EXPECT_THAT(floats(y), ElementsAre(FloatEq(-2), -1));
  EXPECT_THAT(floats(call_op("Det", {Tensor::zeros(DType::f32, {0, 0})})[0]), ElementsAre(1));
}

TEST(Det, GradientOfASingularMatrixIsItsCofactors) {
  const Tensor x = Tensor::from<float>({2, 2}, {1, 2, 2, 4});
  EXPECT_THAT(floats(rule_gradients("Det", {x}, Tensor::scalar(1.0F))[0]),
              ElementsAre(4, -2, -2, 1));
}

TEST(Det, RefusesWhatIsNotSquare) {
  EXPECT_EQ(kind_of([] { call_op("Det", {Tensor::zeros(DType::f32, {2, 3})}); }), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
