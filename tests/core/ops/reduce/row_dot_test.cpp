#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using testing::floats;

Tensor row_dot(const Tensor& a, const Tensor& b) {
  return testing::call_internal_op("RowDot", {a, b})[0];
}

TEST(RowDot, EachRowGivesOneNumber) {
  const Tensor a = Tensor::from<float>({2, 1, 3}, {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F});
  const Tensor b = Tensor::from<float>({2, 1, 3}, {1.0F, 0.0F, -1.0F, 2.0F, 2.0F, 0.5F});
  const Tensor y = row_dot(a, b);
  EXPECT_EQ(y.shape(), (Shape{2, 1}));
  EXPECT_THAT(floats(y), ElementsAre(-2.0F, 21.0F));
}

TEST(RowDot, NothingIsBroadcast) {
  const Tensor a = Tensor::zeros(DType::f32, {2, 3});
  EXPECT_EQ(kind_of([&] { row_dot(a, Tensor::zeros(DType::f32, {1, 3})); }), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
