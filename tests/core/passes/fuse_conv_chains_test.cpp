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
  Expr image(std::string_view name) { return input(name, {1, 2, 4, 4}); }
  bool fuses() {
    passes::fuse_chains(graph, cpu());
    const bool found = passes::fuse_conv_chains(graph, cpu());
    verify(graph);
    return found;
  }
};

TEST(FuseConvChains, ARectifierBecomesPartOfTheConvolution) {
  Net net;
  const Expr y = relu(net.convolution(net.image("x")));
  net.graph.rename(y.value(), "y");
  net.graph.add_output(y.value());
  EXPECT_TRUE(net.fuses());
  EXPECT_EQ(print(net.graph), R"(net(x: f32[1,2,4,4]) -> (y: f32[1,2,4,4])
  w: f32[2,2,1,1] = initializer
  y: f32[1,2,4,4] = ai.graft.ConvChain(x, w, _) {group = 1, result = 0}
    body = chain(Conv_out0: ?) -> (y: ?)
      y: ? = Relu(Conv_out0)
)");
}

/// The other one's result is there when the later one is made.
TEST(FuseConvChains, OfTwoConvolutionsTheLaterTakesTheSum) {
  Net net;
  const Expr x = net.image("x");
  const Expr first = net.convolution(x);
  const Expr second = net.convolution(first * first);
  net.graph.add_output(relu(net.convolution(x) + second).value());
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
  net.graph.add_output(relu(call("Conv", {net.image("x"), w})).value());
  EXPECT_FALSE(net.fuses());
}

TEST(FuseConvChains, AResultThatOthersReadStays) {
  Net net;
  const Expr y = net.convolution(net.image("x"));
  net.graph.add_output(relu(y).value());
  net.graph.add_output(y.value());
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
  net.graph.add_output((y + net.input("many", {3, 2, 4, 4})).value());
  EXPECT_FALSE(net.fuses());
}

}  // namespace
}  // namespace graft
