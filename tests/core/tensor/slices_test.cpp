// Parts of tensors, and that what is not there is refused.
#include "core/tensor/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// [[0, 1], [2, 3], [4, 5]].
Tensor table() {
  return Tensor::from<float>({3, 2}, {0, 1, 2, 3, 4, 5});
}

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<const float>();
  return {values.begin(), values.end()};
}

TEST(Slices, CutAlongAnyAxis) {
  EXPECT_THAT(floats(narrow(table(), 0, 1, 2)), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(floats(narrow(table(), 1, 1, 1)), ElementsAre(1, 3, 5));
  EXPECT_EQ(narrow(table(), 0, 3, 0).shape(), (Shape{0, 2}));
  EXPECT_THAT(floats(select(table(), 0, 2)), ElementsAre(4, 5));
}

TEST(Slices, WhatIsNotThereIsRefused) {
  const Error error = error_of([] { narrow(table(), 0, 2, 5); });
  EXPECT_EQ(error.kind(), ErrorKind::shape);
  EXPECT_THAT(error.what(), HasSubstr("cannot take 5 entries from 2 on of the 3 along axis 0"));
  for (const auto& [axis, start, length] :
       {std::array<int, 3>{0, 3, 1}, {0, -1, 1}, {0, 0, -1}, {1, 0, 3}, {-1, 0, 1}, {2, 0, 1}}) {
    EXPECT_THROW(narrow(table(), axis, start, length), Error) << axis << ' ' << start;
  }
  EXPECT_THROW(select(table(), 0, 3), Error);
  EXPECT_THROW(select(Tensor::scalar(1.0F), 0, 0), Error);
  EXPECT_THROW(narrow(Tensor(), 0, 0, 1), Error);
  const std::vector<Tensor> tables{table(), table()};
  EXPECT_THROW(concat(tables, -1), Error);
}

TEST(Slices, StackAddsAnAxisThatMayStandLast) {
  const std::vector<Tensor> tables{table(), table()};
  EXPECT_EQ(stack(tables, 2).shape(), (Shape{3, 2, 2}));
  for (const int axis : {-1, 3}) {
    EXPECT_EQ(kind_of([&] { stack(tables, axis); }), ErrorKind::shape) << axis;
  }
  for (const int axis : {-1, 2, 5}) {
    EXPECT_EQ(kind_of([&] { check_entries(table(), axis); }), ErrorKind::shape) << axis;
  }
}

TEST(Slices, ATensorOfNothingIsNoArgument) {
  for (const std::vector<Tensor>& tensors :
       {std::vector<Tensor>{Tensor()}, {Tensor(), table()}, {table(), Tensor()}}) {
    EXPECT_EQ(kind_of([&] { concat(tensors, 0); }), ErrorKind::argument);
    EXPECT_EQ(kind_of([&] { stack(tensors, 0); }), ErrorKind::argument);
  }
  EXPECT_EQ(kind_of([] { check_entries(Tensor(), 0); }), ErrorKind::argument);
}

}  // namespace
}  // namespace graft
