#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;
using Ints = std::vector<std::int64_t>;

TEST(LpPool, NormsOfWindows) {
  const Tensor x = Tensor::from<float>({1, 1, 4}, {3, -4, 0, 0});
  const Attribute two{"kernel_shape", Ints{2}};
  EXPECT_THAT(floats(call_op("LpPool", {x}, {two})[0]), ElementsAre(5, 4, 0));
  EXPECT_THAT(floats(call_op("LpPool", {x}, {two, {"p", 1}})[0]), ElementsAre(7, 4, 0));
  EXPECT_THAT(floats(call_op("LpPool", {x}, {two, {"pads", Ints{1, 1}}})[0]),
              ElementsAre(3, 5, 4, 0, 0));
  EXPECT_THAT(floats(call_op("GlobalLpPool", {x})[0]), ElementsAre(5));
}

/// (50^3 + 60^3)^(1/3) = 69.86; 60^3 is beyond f16.
TEST(LpPool, PowersOfShortFloatsHaveRoom) {
  const Tensor x = Tensor::from<float>({1, 1, 2}, {50, -60}).cast(DType::f16);
  const Attribute two{"kernel_shape", Ints{2}};
  const Tensor window = call_op("LpPool", {x}, {two, {"p", 3}})[0];
  EXPECT_EQ(window.dtype(), DType::f16);
  EXPECT_NEAR(floats(window.cast(DType::f32))[0], 69.86, 0.05);
  const Tensor all = call_op("GlobalLpPool", {x}, {{"p", 3}})[0];
  EXPECT_NEAR(floats(all.cast(DType::f32))[0], 69.86, 0.05);
}

TEST(LpPool, RefusesAPowerBelowOne) {
  const Tensor x = Tensor::zeros(DType::f32, {1, 1, 4});
  EXPECT_EQ(kind_of([&] { call_op("GlobalLpPool", {x}, {{"p", 0}}); }), ErrorKind::shape);
}

TEST(CenterCropPad, GivesTheOddElementToTheEnd) {
  const Tensor x = Tensor::from<float>({4}, {1, 2, 3, 4});
  const auto to = [&](std::int64_t size) {
    return floats(call_op("CenterCropPad", {x, Tensor::from<std::int64_t>({1}, {size})})[0]);
  };
  EXPECT_THAT(to(1), ElementsAre(2));
  EXPECT_THAT(to(7), ElementsAre(0, 1, 2, 3, 4, 0, 0));
  EXPECT_EQ(kind_of([&] { to(-1); }), ErrorKind::shape);
}

TEST(MaxUnpool, PutsElementsBack) {
  const Tensor x = Tensor::from<float>({1, 1, 2}, {5, 6});
  const Tensor indices = Tensor::from<std::int64_t>({1, 1, 2}, {1, 2});
  const Attributes two{{"kernel_shape", Ints{2}}, {"strides", Ints{2}}};
  EXPECT_THAT(floats(call_op("MaxUnpool", {x, indices}, two)[0]), ElementsAre(0, 5, 6, 0));
  const auto with_shape = [&](std::int64_t size) {
    const Tensor shape = Tensor::from<std::int64_t>({3}, {1, 1, size});
    return floats(call_op("MaxUnpool", {x, indices, shape}, two)[0]);
  };
  EXPECT_THAT(with_shape(5), ElementsAre(0, 5, 6, 0, 0));
  EXPECT_EQ(kind_of([&] { with_shape(3); }), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
