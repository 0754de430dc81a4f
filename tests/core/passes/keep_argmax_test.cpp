#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

using Ints = std::vector<std::int64_t>;

/// Whether the pass changes a pooling by windows of that size.
bool keeps(const Shape& x, const Ints& window, int outputs = 1) {
  test::SmallNet net;
  const Expr y =
      call_multi("MaxPool", "", {net.input("x", x)}, outputs, {{"kernel_shape", window}}).front();
  net.graph.add_output(y.value());
  return passes::keep_argmax(net.graph);
}

TEST(KeepArgmax, AByteIsKeptForEachResult) {
  test::SmallNet net;
  const Expr y =
      call("MaxPool", {net.input("x", {1, 2, 4, 6})},
           {{"kernel_shape", Ints{2, 2}}, {"storage_order", 0}, {"strides", Ints{2, 2}}});
  net.graph.add_output(y.value());
  EXPECT_TRUE(passes::keep_argmax(net.graph));
  EXPECT_EQ(print(net.graph),
            R"(net(x: f32[1,2,4,6]) -> (maxpool: f32[1,2,2,3])
  maxpool: f32[1,2,2,3], maxpoolwithargmax_1: u8[1,2,2,3] = ai.graft.MaxPoolWithArgmax(x) {kernel_shape = [2, 2], strides = [2, 2]}
)");
  EXPECT_FALSE(passes::keep_argmax(net.graph));
}

TEST(KeepArgmax, WhatAByteCannotNameStays) {
  EXPECT_TRUE(keeps({1, 1, 16, 16}, {16, 16}));
  EXPECT_FALSE(keeps({1, 1, 16, 17}, {16, 17}));
  EXPECT_FALSE(keeps({1, 1, 4, 4}, {2, 2}, 2));  // its indices are an output
  EXPECT_FALSE(keeps({1, 1, 2, 2, 2, 2}, {2, 2, 2, 2}));
}

}  // namespace
}  // namespace graft
