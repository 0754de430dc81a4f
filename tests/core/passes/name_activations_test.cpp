#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

struct Operand : test::SmallNet {
  /// The op that the pass makes of the graph that gives y; empty if it leaves more than one.
  std::string name(const Expr& y) {
    graph.add_output(y.value());
    const bool changed = passes::name_activations(graph);
    if (graph.node_count() != 1) return changed ? "changed" : "";
    const Node& node = *graph.nodes().front();
    EXPECT_EQ(node.input(0), x.value());
    EXPECT_EQ(node.output(0), graph.outputs().front());
    return std::string(node.op_type());
  }
  const Attributes& attributes() const { return graph.nodes().front()->attributes; }

  Expr x = input("x", {3, 5});
};

Expr erf(const Expr& x) {
  return call("Erf", {x});
}

TEST(NameActivations, GeluInTheOrdersOfExporters) {
  Operand torch;
  EXPECT_EQ(torch.name(torch.x * (erf(torch.x / std::numbers::sqrt2) + 1.0) * 0.5), "Gelu");
  EXPECT_EQ(torch.attributes().get_string("approximate", "none"), "none");
  Operand half_first;
  const Expr& x = half_first.x;
  EXPECT_EQ(half_first.name((x * 0.5) * (erf(x * (1 / std::numbers::sqrt2)) + 1.0)), "Gelu");
  Operand half_of_gate;
  const Expr& z = half_of_gate.x;
  EXPECT_EQ(half_of_gate.name(((erf(z / std::numbers::sqrt2) + 1.0) * 0.5) * z), "Gelu");
}

TEST(NameActivations, OneBehindAnother) {
  Operand o;
  const auto swish = [](const Expr& x) { return x * call("Sigmoid", {x}); };
  o.graph.add_output(swish(swish(o.x)).value());
  EXPECT_TRUE(passes::name_activations(o.graph));
  EXPECT_EQ(o.graph.node_count(), 2U) << print(o.graph);
}

TEST(NameActivations, WhatOnlyLooksLikeGeluStays) {
  Operand other_root;
  EXPECT_EQ(other_root.name(other_root.x * (erf(other_root.x / 1.5) + 1.0) * 0.5), "");
  Operand other_sum;
  const Expr gate = erf(other_sum.x / std::numbers::sqrt2) + 2.0;
  EXPECT_EQ(other_sum.name(other_sum.x * gate * 0.5), "");
  Operand of_more_axes;
  const Expr one = constant_like(of_more_axes.x, 1.0);
  const Expr wide_gate = erf(of_more_axes.x / std::numbers::sqrt2) + reshape(one, {1, 1, 1});
  EXPECT_EQ(of_more_axes.name(of_more_axes.x * wide_gate * 0.5), "");
  Operand read_elsewhere;
  const Expr& x = read_elsewhere.x;
  const Expr inner = erf(x / std::numbers::sqrt2);
  EXPECT_EQ(read_elsewhere.name(x * (inner + 1.0) * 0.5 + inner), "");
}

TEST(NameActivations, TheApproximationByTanh) {
  const double root = std::sqrt(2 / std::numbers::pi);
  Operand power;
  const Expr inner = (power.x + pow(power.x, 3.0) * 0.044715) * root;
  EXPECT_EQ(power.name((power.x * 0.5) * (tanh(inner) + 1.0)), "Gelu");
  EXPECT_EQ(power.attributes().get_string("approximate", "none"), "tanh");
  Operand product;
  const Expr& x = product.x;
  EXPECT_EQ(product.name((x * (tanh((x + x * (x * x) * 0.044715) * root) + 1.0)) * 0.5), "Gelu");
}

TEST(NameActivations, SwishWithAndWithoutAFactor) {
  Operand plain;
  EXPECT_EQ(plain.name(plain.x * sigmoid(plain.x)), "Swish");
  EXPECT_EQ(plain.attributes().get_float("alpha", 0.0F), 1.0F);
  Operand quick;
  EXPECT_EQ(quick.name(quick.x * sigmoid(quick.x * 1.702)), "Swish");
  EXPECT_EQ(quick.attributes().get_float("alpha", 0.0F), 1.702F);
  Operand exact;  // an attribute is f32
  exact.x.value()->set_type({DType::f64, SymShape{3, 5}});
  EXPECT_EQ(exact.name(exact.x * sigmoid(exact.x * 1.702)), "");
  Operand half;
  half.x.value()->set_type({DType::f64, SymShape{3, 5}});
  EXPECT_EQ(half.name(half.x * sigmoid(half.x * 0.5)), "Swish");
  Operand gate;  // of another value
  EXPECT_EQ(gate.name((gate.x + 1.0) * sigmoid(gate.x)), "");
}

}  // namespace
}  // namespace graft
