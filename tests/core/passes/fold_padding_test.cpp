#include <gtest/gtest.h>

#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

using Ints = std::vector<std::int64_t>;

/// A Pad and a convolution of it.
struct Padded : test::SmallNet {
  explicit Padded(const Ints& pads, double value = 0.0, const Attributes& of_pad = {},
                  Attributes of_conv = {}) {
    const Expr x = input("x", {1, 2, 4, 4});
    padded = call("Pad",
                  {x, constant_ints(builder, pads),
                   builder.expr(builder.constant(Tensor::full(DType::f32, {}, value)))},
                  of_pad);
    const std::int64_t channels = padded.shape()[1];
    const Expr y = call("Conv", {padded, input("w", {3, channels, 3, 3})}, std::move(of_conv));
    shape = y.shape();
    graph.add_output(y.value());
  }
  const Node& last() const { return *graph.outputs().front()->producer(); }

  Expr padded;
  Shape shape;
};

TEST(FoldPadding, TheConvolutionPadsByItself) {
  Padded net({0, 0, 1, 2, 0, 0, 3, 0}, 0.0, {}, {{"pads", Ints{1, 0, 0, 1}}});
  EXPECT_TRUE(passes::fold_padding(net.graph));
  ASSERT_EQ(net.graph.node_count(), 1U);
  EXPECT_EQ(net.last().attributes.get_ints("pads"), (Ints{2, 2, 3, 1}));
  EXPECT_EQ(net.last().output()->known_shape(), net.shape) << "as before";
}

TEST(FoldPadding, WhatIsNoZeroAroundAnImageStays) {
  const Ints around{0, 0, 1, 1, 0, 0, 1, 1};
  Padded half(around, 0.5);
  Padded edges(around, 0.0, {{"mode", "edge"}});
  Padded channel({0, 1, 1, 1, 0, 0, 1, 1});
  Padded cut({0, 0, -1, 1, 0, 0, 1, 1});
  for (Padded* const net : {&half, &edges, &channel, &cut}) {
    EXPECT_FALSE(passes::fold_padding(net->graph));
  }
}

/// What the convolution would add depends on the image that it sees.
TEST(FoldPadding, AConvolutionThatKeepsTheSizeStays) {
  Padded net({0, 0, 1, 1, 0, 0, 1, 1}, 0.0, {}, {{"auto_pad", "SAME_UPPER"}});
  EXPECT_FALSE(passes::fold_padding(net.graph));
}

TEST(FoldPadding, AnImageThatOthersReadStays) {
  Padded net({0, 0, 1, 1, 0, 0, 1, 1});
  net.graph.add_output(net.padded.value());
  EXPECT_FALSE(passes::fold_padding(net.graph));
}

}  // namespace
}  // namespace graft
