#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

/// Convolutions with a weight of ones, known before the run, from two channels to two.
struct Net : test::SmallNet {
  Expr weight() {
    return builder.expr(builder.constant(Tensor::full(DType::f32, {2, 2, 1, 1}, 1), "w"));
  }
  Expr convolution(const Expr& x) { return call("Conv", {x, weight()}, {{"group", 1}}); }
  Expr rectified(const Expr& x) { return call("Relu", {x}); }
  Expr image(std::string_view name) { return input(name, {1, 2, 600, 500}); }
  bool fuses() {
    passes::fuse_chains(graph, cpu());
    const bool found = passes::fuse_conv_chains(graph, cpu());
    verify(graph);
    return found;
  }
};

TEST(FuseConvChains, ARectifierBecomesPartOfTheConvolution) {
  Net net;
  const Expr y = net.rectified(net.convolution(net.image("x")));
  net.graph.rename(y.value(), "y");
  net.graph.add_output(y.value());
  EXPECT_TRUE(net.fuses());
  ASSERT_EQ(net.graph.node_count(), 1U) << print(net.graph);
  const Node& fused = *net.graph.nodes().front();
  EXPECT_TRUE(fused.is("ConvChain", kInternalDomain));
  EXPECT_EQ(fused.attributes.get_int("group", 0), 1) << "an attribute of the convolution";
  EXPECT_EQ(fused.attributes.get_int("result", -1), 0);
  EXPECT_EQ(fused.output()->name(), "y");
  EXPECT_EQ(fused.output()->known_shape(), (Shape{1, 2, 600, 500}));
}

/// The other one's result is there when the later one is made.
TEST(FuseConvChains, OfTwoConvolutionsTheLaterTakesTheSum) {
  Net net;
  const Expr x = net.image("x");
  const Expr first = net.convolution(x);
  const Expr second = net.convolution(first * first);
  net.graph.add_output(net.rectified(net.convolution(x) + second).value());
  EXPECT_TRUE(net.fuses());
  int convolutions = 0;
  for (const auto& node : net.graph.nodes()) convolutions += node->is("Conv") ? 1 : 0;
  EXPECT_EQ(convolutions, 2);
  const Node& last = *net.graph.nodes().back();
  ASSERT_TRUE(last.is("ConvChain", kInternalDomain));
  EXPECT_EQ(last.input_count(), 4);
}

TEST(FuseConvChains, AWeightThatMayChangeIsLeftAlone) {
  Net net;
  const Expr w = net.weight();
  w.value()->is_variable = true;
  net.graph.add_output(net.rectified(call("Conv", {net.image("x"), w})).value());
  EXPECT_FALSE(net.fuses());
}

TEST(FuseConvChains, AResultThatOthersReadStays) {
  Net net;
  const Expr y = net.convolution(net.image("x"));
  net.graph.add_output(net.rectified(y).value());
  net.graph.add_output(y.value());
  EXPECT_FALSE(net.fuses());
}

TEST(FuseConvChains, ASmallResultIsInACacheAnyway) {
  Net net;
  net.graph.add_output(net.rectified(net.convolution(net.input("x", {1, 2, 60, 50}))).value());
  EXPECT_FALSE(net.fuses());
}

/// A number a channel is not what a stretch of the result meets.
TEST(FuseConvChains, AnOperandOfAnotherShapeStaysOutside) {
  Net net;
  const Expr channel = net.input("scale", {1, 2, 1, 1});
  net.graph.add_output((net.convolution(net.image("x")) * channel).value());
  EXPECT_FALSE(net.fuses());
}

TEST(FuseConvChains, AResultThatBecomesLargerStaysOutside) {
  Net net;
  const Expr y = net.convolution(net.image("x"));
  net.graph.add_output((y + net.input("many", {3, 2, 600, 500})).value());
  EXPECT_FALSE(net.fuses());
}

}  // namespace
}  // namespace graft
