#include <gtest/gtest.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

TEST(Lrn, RefusesMoreChannelsThanAWindowCanMeet) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{1, std::int64_t{1} << 62}});
  const std::int64_t size = INT64_MAX;
  graph.add_output(builder.node("LRN", "", {x}, 1, {{"size", size}})->output());
  EXPECT_EQ(kind_of([&] { passes::decompose(graph); }), ErrorKind::shape);
}

}  // namespace
}  // namespace graft
