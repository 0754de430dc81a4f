#include <gmock/gmock.h>

#include "core/ops/product/einsum.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/decomposed_op.h"

namespace graft {
namespace {

using testing::call_decomposed;
using ::testing::ElementsAre;
using testing::floats;

Tensor square() {
  return Tensor::from<float>({2, 2}, {1, 2, 3, 4});
}

std::vector<float> einsum(const char* equation, const std::vector<Tensor>& inputs) {
  return floats(call_decomposed("Einsum", inputs, {{"equation", equation}})[0]);
}

TEST(Einsum, ByHand) {
  EXPECT_THAT(einsum("ij->ji", {square()}), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(einsum("ii", {square()}), ElementsAre(5));
  EXPECT_THAT(einsum("ii->i", {square()}), ElementsAre(1, 4));
  EXPECT_THAT(einsum("ij,jk", {square(), square()}), ElementsAre(7, 10, 15, 22));
  EXPECT_THAT(einsum("ij,ij->i", {square(), square()}), ElementsAre(5, 25));
  EXPECT_THAT(einsum("...j->j...", {square()}), ElementsAre(1, 3, 2, 4));
  // Without an arrow, letters that occur once go in alphabetical order.
  EXPECT_THAT(einsum("ba", {square()}), ElementsAre(1, 3, 2, 4));
}

TEST(Einsum, RefusesBadEquations) {
  const auto kind = [](const char* equation, const std::vector<int>& ranks) {
    return kind_of([&] { parse_einsum(equation, ranks, "einsum"); });
  };
  EXPECT_EQ(kind("ij", {3}), ErrorKind::model);
  EXPECT_EQ(kind("ij,jk", {2}), ErrorKind::model);
  EXPECT_EQ(kind("i1", {2}), ErrorKind::model);
  EXPECT_EQ(kind("......", {2}), ErrorKind::model);
  EXPECT_EQ(kind("i..", {1}), ErrorKind::model);
  EXPECT_EQ(kind("ij->ii", {2}), ErrorKind::model);
  EXPECT_EQ(kind("ij->k", {2}), ErrorKind::model);
  EXPECT_EQ(kind("ij->i->j", {2}), ErrorKind::model);
}

TEST(Einsum, RefusesDimsThatDiffer) {
  const Tensor wide = Tensor::zeros(DType::f32, {2, 3});
  EXPECT_EQ(kind_of([&] { einsum("ii", {wide}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { einsum("ij,jk", {wide, wide}); }), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
