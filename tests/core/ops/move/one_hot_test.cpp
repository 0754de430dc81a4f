#include <gmock/gmock.h>

#include <cmath>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_old_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

TEST(OneHot, OffOutsideTheDepth) {
  const Tensor indices = Tensor::from<std::int64_t>({3}, {1, -1, 5});
  const Tensor y = call_op(
      "OneHot", {indices, Tensor::scalar<std::int64_t>(3), Tensor::from<float>({2}, {0, 1})})[0];
  EXPECT_EQ(y.shape(), Shape({3, 3}));
  EXPECT_THAT(floats(y), ElementsAre(0, 1, 0, 0, 0, 1, 0, 0, 0));
}

TEST(TopK, EqualValuesGoByTheirPlace) {
  const Tensor x = Tensor::from<float>({5}, {1, 3, 2, 3, NAN});
  const Tensor k = Tensor::from<std::int64_t>({1}, {3});
  const std::vector<Tensor> top = call_op("TopK", {x, k}, {}, 2);
  EXPECT_THAT(to_int64(top[1]), ElementsAre(4, 1, 3));
  EXPECT_THAT(to_int64(call_op("TopK", {x, k}, {{"largest", 0}}, 2)[1]), ElementsAre(0, 2, 1));
}

TEST(TopK, TakesKAsAttributeBefore10) {
  const Tensor x = Tensor::from<float>({1, 3}, {1, 3, 2});
  EXPECT_THAT(floats(call_old_op("TopK", 9, {x}, {{"k", 2}})), ElementsAre(3, 2));
}

TEST(TopK, RefusesMoreThanThereIs) {
  const Tensor x = Tensor::zeros(DType::f32, {3});
  for (const std::int64_t k : {4, -1}) {
    EXPECT_EQ(kind_of([&] {
                call_op("TopK", {x, Tensor::from<std::int64_t>({1}, {k})}, {}, 2);
              }),
              ErrorKind::shape);
  }
}

}  // namespace
}  // namespace graft
