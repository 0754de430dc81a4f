#include "core/base/sym_shape.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace graft {
namespace {

TEST(Dim, IsKnownNamedOrUnknown) {
  EXPECT_TRUE(Dim(0).is_known());
  EXPECT_FALSE(Dim("N").is_known());
  EXPECT_FALSE(Dim().is_known());
  EXPECT_EQ(Dim("N").symbol(), "N");
  EXPECT_EQ(Dim(-7), Dim());
}

TEST(Dim, SameAsNeedsKnowledge) {
  EXPECT_TRUE(Dim(3).same_as(Dim(3)));
  EXPECT_FALSE(Dim(3).same_as(Dim(4)));
  EXPECT_TRUE(Dim("N").same_as(Dim("N")));
  EXPECT_FALSE(Dim("N").same_as(Dim("M")));
  EXPECT_FALSE(Dim("N").same_as(Dim(3)));
  EXPECT_FALSE(Dim().same_as(Dim()));
  EXPECT_EQ(Dim(), Dim());  // but structurally they are equal
}

TEST(SymShape, KnownOnlyWhenEachDimIs) {
  EXPECT_EQ(SymShape(Shape{2, 3}).known(), (Shape{2, 3}));
  EXPECT_EQ(SymShape().known(), Shape());
  EXPECT_EQ((SymShape{Dim("N"), 3}).known(), std::nullopt);
  EXPECT_EQ((SymShape{Dim(), 3}).known(), std::nullopt);
}

TEST(SymShape, CopiesShareTheirDimsUntilOneChanges) {
  const SymShape first{Dim("N"), 3};
  SymShape second = first;
  EXPECT_EQ(second.dims().data(), first.dims().data());
  second[0] = 2;
  EXPECT_EQ(second, SymShape(Shape{2, 3}));
  EXPECT_EQ(first, (SymShape{Dim("N"), 3}));
  const Dim* const own = second.dims().data();
  second[1] = 4;
  EXPECT_EQ(second.dims().data(), own);
  EXPECT_EQ(SymShape(), SymShape(Shape()));
}

TEST(SymShape, Prints) {
  EXPECT_EQ(text(SymShape{Dim("batch"), 3, Dim()}), "[batch,3,?]");
  EXPECT_EQ(text(SymShape()), "[]");
}

}  // namespace
}  // namespace graft
