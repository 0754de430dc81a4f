#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

Tensor list(std::initializer_list<std::int64_t> numbers) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

TEST(Expand, BroadcastsBothWays) {
  const Tensor x = Tensor::from<float>({2, 1}, {1, 2});
  const Tensor y = call_op("Expand", {x, list({2, 1, 2})})[0];
  EXPECT_EQ(y.shape(), Shape({2, 2, 2}));
  EXPECT_THAT(floats(y), ElementsAre(1, 1, 2, 2, 1, 1, 2, 2));
  EXPECT_EQ(call_op("Expand", {x, list({1})})[0].shape(), Shape({2, 1}));
  EXPECT_EQ(kind_of([&] { call_op("Expand", {x, list({3, 2})}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { call_op("Expand", {x, list({-1})}); }), ErrorKind::shape);
}

TEST(Tile, RepeatsTheWhole) {
  const Tensor x = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(floats(call_op("Tile", {x, list({1, 2})})[0]), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(floats(call_op("Tile", {x, list({2, 1})})[0]), ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
  EXPECT_EQ(kind_of([&] { call_op("Tile", {x, list({2})}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { call_op("Tile", {x, list({2, -1})}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { call_op("Tile", {x, list({INT64_MAX, 2})}); }), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
