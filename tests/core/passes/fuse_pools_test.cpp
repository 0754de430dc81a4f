#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

using Ints = std::vector<std::int64_t>;

/// A Relu of a MaxPool, by windows of that size, of a convolution with a bias.
struct Net : test::SmallNet {
  explicit Net(const Ints& window = {2, 2}) {
    conv = call("Conv", {input("x", {1, 3, 20, 20}), input("w", {2, 3, 1, 1}), input("b", {2})});
    pool = call("MaxPool", {conv}, {{"kernel_shape", window}, {"strides", window}});
    graph.add_output(call("Relu", {pool}).value());
  }
  bool fuse() { return passes::fuse_pools(graph); }

  Expr conv;
  Expr pool;
};

TEST(FusePools, ThePoolAddsTheBiasAndRectifies) {
  Net net;
  EXPECT_TRUE(net.fuse());
  EXPECT_EQ(print(net.graph),
            R"(net(x: f32[1,3,20,20], w: f32[2,3,1,1], b: f32[2]) -> (relu: f32[1,2,10,10])
  conv_1: f32[1,2,20,20] = Conv(x, w)
  relu: f32[1,2,10,10], maxpoolwithargmax_1: u8[1,2,10,10] = ai.graft.MaxPoolWithArgmax(conv_1, b) {kernel_shape = [2, 2], strides = [2, 2], relu = 1}
)");
  EXPECT_FALSE(net.fuse());
}

TEST(FusePools, WhatOthersReadStays) {
  Net one;
  one.graph.add_output(one.conv.value());
  EXPECT_FALSE(one.fuse());
  Net other;
  other.graph.add_output(other.pool.value());
  EXPECT_FALSE(other.fuse());
}

TEST(FusePools, AByteMustNameEachElementAndNone) {
  EXPECT_TRUE(Net({5, 17}).fuse());
  EXPECT_TRUE(Net({15, 17}).fuse());
  EXPECT_FALSE(Net({16, 16}).fuse());
}

}  // namespace
}  // namespace graft
