#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

/// A convolution, and what `follow` makes of it.
struct Followed : test::SmallNet {
  template <class Follow>
  explicit Followed(Follow&& follow, DType dtype = DType::f32) {
    conv = call("Conv", {input("x", {1, 2, 4, 4}, dtype), input("w", {3, 2, 3, 3}, dtype)});
    graph.add_output(follow(*this).value());
  }
  Expr number(double value) {
    return builder.expr(builder.constant(Tensor::full(DType::f32, {}, value)));
  }
  bool is_clamped() {
    return passes::clamp_convolutions(graph) &&
           graph.outputs().front()->producer()->is("ConvClamp", kInternalDomain);
  }
  const Attributes& attributes() const { return graph.outputs().front()->producer()->attributes; }

  Expr conv;
};

TEST(ClampConvolutions, AReluHasALowerBound) {
  Followed net([](Followed& n) { return call("Relu", {n.conv}); });
  EXPECT_TRUE(net.is_clamped());
  EXPECT_EQ(net.graph.node_count(), 1U);
  EXPECT_EQ(net.attributes().get_float("lower", -1.0F), 0.0F);
  EXPECT_FALSE(net.attributes().has("upper"));
}

TEST(ClampConvolutions, AnOutputKeepsItsName) {
  Followed net([](Followed& n) {
    const Expr y = call("Relu", {n.conv});
    n.graph.rename(y.value(), "answer");
    return y;
  });
  EXPECT_TRUE(net.is_clamped());
  EXPECT_EQ(net.graph.outputs().front()->name(), "answer");
}

TEST(ClampConvolutions, AClipHasTheBoundsThatAreGiven) {
  Followed both([](Followed& n) { return call("Clip", {n.conv, n.number(-0.5), n.number(6.0)}); });
  EXPECT_TRUE(both.is_clamped());
  EXPECT_EQ(both.attributes().get_float("lower", 0.0F), -0.5F);
  EXPECT_EQ(both.attributes().get_float("upper", 0.0F), 6.0F);
  Followed upper([](Followed& n) { return call("Clip", {n.conv, Expr(), n.number(6.0)}); });
  EXPECT_TRUE(upper.is_clamped());
  EXPECT_FALSE(upper.attributes().has("lower"));
}

TEST(ClampConvolutions, WhatTheAttributesCannotSayStays) {
  Followed computed([](Followed& n) { return call("Clip", {n.conv, n.input("least", {})}); });
  Followed nan([](Followed& n) { return call("Clip", {n.conv, n.number(0.0 / 0.0)}); });
  Followed f16([](Followed& n) { return call("Relu", {n.conv}); }, DType::f16);
  Followed other([](Followed& n) { return call("Sigmoid", {n.conv}); });
  for (Followed* const net : {&computed, &nan, &f16, &other}) EXPECT_FALSE(net->is_clamped());
}

TEST(ClampConvolutions, AConvolutionThatOthersReadStays) {
  Followed read([](Followed& n) { return call("Relu", {n.conv}) + n.conv; });
  EXPECT_FALSE(read.is_clamped());
  Followed shown([](Followed& n) { return call("Relu", {n.conv}); });
  shown.graph.add_output(shown.conv.value());
  EXPECT_FALSE(shown.is_clamped());
}

}  // namespace
}  // namespace graft
