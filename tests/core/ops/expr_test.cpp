#include "core/ops/expr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

TEST(Expr, AnEmptyOneIsNoOperand) {
  const Expr none;
  EXPECT_EQ(kind_of([&] { none + 1.0; }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { 1.0 / none; }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { exp(none); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { constant_like(none, 1.0); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { zeros_like(none); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { cast(none, DType::f32); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { reshape(none, {1}); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { expand(none, {1}); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { unsqueeze(none, {0}); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { reduce_sum(none, {0}, false); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { transpose_last(none); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { sum_to(none, {1}); }), ErrorKind::argument);
}

TEST(Expr, TransposeLastWantsTwoAxes) {
  Graph graph;
  Builder builder(graph);
  for (const Shape& shape : {Shape{}, Shape{3}}) {
    const Expr x = builder.expr(graph.add_input("", {DType::f32, SymShape(shape)}));
    const Error error = error_of([&] { transpose_last(x); });
    EXPECT_EQ(error.kind(), ErrorKind::shape);
    EXPECT_THAT(error.what(), testing::HasSubstr("wanted rank 2 or more"));
  }
}

}  // namespace
}  // namespace graft
