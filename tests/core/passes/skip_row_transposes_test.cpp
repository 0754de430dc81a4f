#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

/// An attention with two heads of depth 4 over 5 tokens, its batch of 2 behind the sequence.
struct Layer : test::SmallNet {
  Layer() {
    x = input("x", {2, 5, 6});
    in = input("in", {6, 24});
    in_bias = input("in_bias", {24});
    out = input("out", {8, 6});
    out_bias = input("out_bias", {6});
  }
  Expr swap(const Expr& rows) { return transpose(rows, {1, 0, 2}); }
  Expr attend(const Expr& stacks, const Expr& bias = {}) {
    const Attributes attributes{{"sequence_axis", 0}, {"stack_axis", 2}};
    const Expr x5 = reshape(stacks, {5, 2, 3, 2, 4});
    return call_multi("TiledAttention", kInternalDomain, {x5, {}, {}, bias}, 2, attributes).front();
  }
  /// [5, 2, 6]
  Expr layer(const Expr& rows, const Expr& bias = {}) {
    const Expr y = reshape(attend(in_bias + matmul(rows, in), bias), {10, 8});
    return reshape(call("Gemm", {y, out, out_bias}), {5, 2, 6});
  }
  bool skip(const Expr& y) {
    graph.add_output(y.value());
    return passes::skip_row_transposes(graph);
  }
  int count(std::string_view op) const {
    int result = 0;
    for (const auto& node : graph.nodes()) result += node->op_type() == op ? 1 : 0;
    return result;
  }

  Expr x;
  Expr in;
  Expr in_bias;
  Expr out;
  Expr out_bias;
};

TEST(SkipRowTransposes, TheAttentionTakesItsSequenceFromAnotherAxis) {
  Layer net;
  EXPECT_TRUE(net.skip(net.swap(net.layer(net.swap(net.x)))));
  EXPECT_EQ(net.count("Transpose"), 0) << print(net.graph);
  for (const auto& node : net.graph.nodes()) {
    if (!node->is("TiledAttention", kInternalDomain)) continue;
    EXPECT_EQ(node->input(0)->known_shape(), (Shape{2, 5, 3, 2, 4}));
    EXPECT_EQ(node->attributes.get_int("sequence_axis", -1), 1);
    EXPECT_EQ(node->attributes.get_int("stack_axis", -1), 2);
  }
  EXPECT_EQ(net.graph.outputs().front()->known_shape(), (Shape{2, 5, 6}));
  EXPECT_FALSE(passes::skip_row_transposes(net.graph));
}

TEST(SkipRowTransposes, LayersBehindOneAnother) {
  Layer net;
  const Expr first = net.swap(net.layer(net.swap(net.x)));
  EXPECT_TRUE(net.skip(net.swap(net.layer(net.swap(first), net.input("bias", {5, 5})))));
  EXPECT_EQ(net.count("Transpose"), 0) << print(net.graph);
  EXPECT_EQ(net.count("TiledAttention"), 2);
}

TEST(SkipRowTransposes, WhatDoesNotWorkRowByRowStays) {
  Layer one_way;
  EXPECT_FALSE(one_way.skip(one_way.layer(one_way.swap(one_way.x))));
  Layer mixed;  // along the sequence
  const Expr rows = mixed.swap(mixed.x) + mixed.input("positions", {5, 1, 6});
  EXPECT_FALSE(mixed.skip(mixed.swap(mixed.layer(rows))));
  Layer joined;  // all of a token's batch in one row
  const Expr wide = reshape(joined.swap(joined.x), {5, 12});
  const Expr stacks = matmul(wide, joined.input("joined_in", {12, 48}));
  const Expr back = reshape(joined.attend(stacks), {10, 8});
  const Expr result = reshape(matmul(back, joined.out), {5, 2, 6});
  EXPECT_FALSE(joined.skip(joined.swap(result)));
  Layer read;
  const Expr y = read.layer(read.swap(read.x));
  read.graph.add_output(y.value());
  EXPECT_FALSE(read.skip(read.swap(y)));
}

}  // namespace
}  // namespace graft
