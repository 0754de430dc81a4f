#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

/// x [2,3,4] and parameters of its last axis.
struct Operands : test::SmallNet {
  Operands() {
    x = input("x", {2, 3, 4});
    scale = input("scale", {4});
    bias = input("bias", {4});
  }
  Expr number(double value) { return constant_like(x, value); }
  Expr mean(const Expr& of, const std::vector<std::int64_t>& axes, std::int64_t keepdims = 1) {
    const auto count = static_cast<std::int64_t>(axes.size());
    const Expr list = builder.expr(builder.constant(Tensor::from<std::int64_t>({count}, axes)));
    return call("ReduceMean", {of, list}, {{"keepdims", keepdims}});
  }
  Expr deviation() { return x - mean(x, {-1}); }
  Expr root(const Expr& variance) { return call("Sqrt", {variance + number(0.5)}); }
  Expr square(const Expr& of) { return call("Pow", {of, number(2.0)}); }
  /// The result of the pass on the graph that gives y.
  bool fuse(const Expr& y) {
    graph.add_output(y.value());
    return passes::fuse_layer_norm(graph);
  }

  Expr x;
  Expr scale;
  Expr bias;
};

TEST(FuseLayerNorm, TheExportedFormBecomesOneNode) {
  Operands o;
  const Expr d = o.deviation();
  EXPECT_TRUE(o.fuse(d / o.root(o.mean(o.square(d), {-1})) * o.scale + o.bias));
  EXPECT_EQ(print(o.graph),
            R"(net(x: f32[2,3,4], scale: f32[4], bias: f32[4]) -> (add_1: f32[2,3,4])
  add_1: f32[2,3,4] = LayerNormalization(x, scale, bias) {axis = 2, epsilon = 0.5}
)");
  EXPECT_FALSE(passes::fuse_layer_norm(o.graph));
}

TEST(FuseLayerNorm, AnEpsilonThatF32CannotHoldIsKeptInF64) {
  for (const double epsilon : {0.1, 0.125}) {
    Operands o;
    for (const Expr& operand : {o.x, o.scale, o.bias}) {
      operand.value()->set_type({DType::f64, operand.value()->shape()});
    }
    const Expr d = o.deviation();
    const Expr root = call("Sqrt", {o.mean(d * d, {-1}) + o.number(epsilon)});
    EXPECT_EQ(o.fuse(d / root * o.scale + o.bias), epsilon == 0.125);
  }
}

TEST(FuseLayerNorm, DifferencesWrittenTwiceAndReciprocalsToo) {
  Operands o;
  const Expr middle = o.mean(o.x, {-1});
  const Expr d = o.x - middle;
  const Expr inverse = call("Reciprocal", {o.root(o.mean(d * d, {-1}))});
  EXPECT_TRUE(o.fuse(o.bias + o.scale * ((o.x - middle) * inverse)));
  ASSERT_EQ(o.graph.node_count(), 1U) << print(o.graph);
}

TEST(FuseLayerNorm, OneBehindAnother) {
  Operands o;
  const auto norm = [&](const Expr& x) {
    const Expr d = x - o.mean(x, {-1});
    return d / o.root(o.mean(o.square(d), {-1})) * o.scale + o.bias;
  };
  EXPECT_TRUE(o.fuse(norm(norm(o.x))));
  EXPECT_EQ(o.graph.node_count(), 2U) << print(o.graph);
}

TEST(FuseLayerNorm, WithoutParametersTheScaleIsOne) {
  Operands o;
  const Expr d = o.x - o.mean(o.x, {1, 2});
  EXPECT_TRUE(o.fuse(d / o.root(o.mean(o.square(d), {2, 1}))));
  const Node& norm = *o.graph.outputs().front()->producer();
  EXPECT_EQ(norm.attributes.get_int("axis", 0), 1);
  EXPECT_EQ(norm.input_count(), 2);
  EXPECT_EQ(norm.input(1)->known_shape(), (Shape{3, 4}));
}

TEST(FuseLayerNorm, WithoutAMeanItIsRms) {
  Operands o;
  EXPECT_TRUE(o.fuse(o.x / o.root(o.mean(o.square(o.x), {-1})) * o.scale));
  ASSERT_EQ(o.graph.node_count(), 1U);
  EXPECT_TRUE(o.graph.nodes().front()->is("RMSNormalization"));
}

TEST(FuseLayerNorm, ANormOfOtherAxesIsLeftAlone) {
  Operands o;
  const Expr over_batch = o.x - o.mean(o.x, {0});
  EXPECT_FALSE(o.fuse(over_batch / o.root(o.mean(o.square(over_batch), {0}))));
  Operands two;
  const Expr mixed = two.x - two.mean(two.x, {1, 2});
  EXPECT_TRUE(two.fuse(mixed / two.root(two.mean(two.square(mixed), {2}))));
  EXPECT_TRUE(two.graph.outputs().front()->producer()->is("RMSNormalization"));
}

TEST(FuseLayerNorm, AParameterThatIsNotOfTheRowStaysOutside) {
  Operands o;
  const Expr d = o.deviation();
  const Expr wide = o.input("wide", {3, 4});
  EXPECT_TRUE(o.fuse(d / o.root(o.mean(o.square(d), {-1})) * wide));
  EXPECT_TRUE(o.graph.outputs().front()->producer()->is("Mul"));
}

}  // namespace
}  // namespace graft
