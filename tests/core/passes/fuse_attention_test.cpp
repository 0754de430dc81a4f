#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Two heads of 3 queries and 5 keys, 4 and 6 deep.
struct Operands : test::SmallNet {
  Operands() {
    q = input("q", {2, 3, 4});
    k = input("k", {2, 5, 4});
    v = input("v", {2, 5, 6});
  }
  Expr number(double value) { return constant_like(q, value); }
  Expr softmax(const Expr& scores, int axis = -1) {
    return call("Softmax", {scores}, {{"axis", axis}});
  }
  /// The result of the pass on the graph that gives y.
  bool fuse(const Expr& y) {
    graph.add_output(y.value());
    return passes::fuse_attention(graph);
  }

  Expr q;
  Expr k;
  Expr v;
};

TEST(FuseAttention, ThePlainFormBecomesOneNode) {
  Operands x;
  EXPECT_TRUE(x.fuse(matmul(x.softmax(matmul(x.q, transpose_last(x.k))), x.v)));
  EXPECT_EQ(print(x.graph),
            R"(net(q: f32[2,3,4], k: f32[2,5,4], v: f32[2,5,6]) -> (matmul_1: f32[2,3,6])
  matmul_1: f32[2,3,6], tiledattention_1: f32[2,3] = ai.graft.TiledAttention(q, k, v) {scale = 1.0}
)");
  EXPECT_FALSE(passes::fuse_attention(x.graph));
}

TEST(FuseAttention, FactorsOnEitherSideAndOnTheScoresAreOneScale) {
  Operands x;
  // PyTorch: both sides times the root of the scale, k after it was transposed.
  const Expr k = transpose_last(x.k * 3.0) * 0.5;
  const Expr scores = matmul(x.q * 0.5, k) / 8.0;
  EXPECT_TRUE(x.fuse(matmul(x.softmax(scores), x.v)));
  ASSERT_EQ(x.graph.node_count(), 1U);
  const Node& fused = *x.graph.nodes().front();
  EXPECT_EQ(fused.attributes.get_float("scale", 0.0F), 0.09375F);
  EXPECT_EQ(fused.input(1), x.k.value());
}

/// The attribute is f32: q takes such a scale in f64.
TEST(FuseAttention, AScaleThatF32CannotHoldStaysAFactorInF64) {
  Operands x;
  for (const Expr& operand : {x.q, x.k, x.v}) {
    operand.value()->set_type({DType::f64, operand.value()->shape()});
  }
  const Expr scores = matmul(x.q, transpose_last(x.k)) * 0.1;
  EXPECT_TRUE(x.fuse(matmul(x.softmax(scores), x.v)));
  ASSERT_EQ(x.graph.node_count(), 2U);
  const Node& fused = *x.graph.nodes().back();
  EXPECT_EQ(fused.attributes.get_float("scale", 0.0F), 1.0F);
  const Node* const factor = fused.input(0)->producer();
  ASSERT_TRUE(factor != nullptr && factor->is("Mul"));
  EXPECT_EQ(to_double(factor->input(1)->initializer()).front(), 0.1);
}

TEST(FuseAttention, AnyTransposeToColumnsIsOneToRows) {
  Operands x;
  const Expr k = x.input("k_inside", {5, 2, 4});
  EXPECT_TRUE(x.fuse(matmul(x.softmax(matmul(x.q, transpose(k, {1, 2, 0}))), x.v)));
  ASSERT_EQ(x.graph.node_count(), 2U);
  const Node& moved = *x.graph.nodes().front();
  EXPECT_EQ(moved.attributes.get_ints("perm"), (std::vector<std::int64_t>{1, 0, 2}));
}

TEST(FuseAttention, MasksAreAdded) {
  Operands x;
  const Expr mask = x.input("mask", {3, 5});
  const Expr hidden = x.input("hidden", {1, 5}, DType::boolean);
  const Expr scores = mask + matmul(x.q, transpose_last(x.k)) * 2.0;
  const Expr chosen = where(hidden, x.number(-kInfinity), scores);
  EXPECT_TRUE(x.fuse(matmul(x.softmax(chosen), x.v)));
  EXPECT_EQ(
      print(x.graph),
      R"(net(q: f32[2,3,4], k: f32[2,5,4], v: f32[2,5,6], mask: f32[3,5], hidden: bool[1,5]) -> (matmul_1: f32[2,3,6])
  constant_2: f32[] = {0.0}
  constant_3: f32[] = {-inf}
  where_1: f32[1,5] = Where(hidden, constant_3, constant_2)
  add_1: f32[3,5] = Add(where_1, mask)
  matmul_1: f32[2,3,6], tiledattention_1: f32[2,3] = ai.graft.TiledAttention(q, k, v, add_1) {scale = 2.0}
)");
}

TEST(FuseAttention, AMaskMayComeFromAfar) {
  Operands x;
  Expr mask = x.input("mask", {3, 5});
  constexpr int kDepth = 100'000;
  for (int i = 0; i < kDepth; ++i) mask = call("Neg", {mask});
  EXPECT_TRUE(x.fuse(matmul(x.softmax(matmul(x.q, transpose_last(x.k)) + mask), x.v)));
}

TEST(FuseAttention, AHeadAxisBehindTheSequenceIsReadWhereItLies) {
  Operands x;
  const auto heads = [&](std::string_view name, std::int64_t length) {
    return transpose(x.input(name, {7, length, 2, 4}), {0, 2, 1, 3});
  };
  const Expr q = heads("queries", 3);
  const Expr k = transpose(x.input("keys", {7, 5, 2, 4}), {0, 2, 3, 1});
  const Expr y = matmul(x.softmax(matmul(q, k)), heads("values", 5));
  EXPECT_TRUE(x.fuse(transpose(y, {0, 2, 1, 3})));
  ASSERT_EQ(x.graph.node_count(), 1U) << print(x.graph);
  EXPECT_EQ(x.graph.nodes().front()->attributes.get_int("sequence_axis", -1), 1);
  EXPECT_EQ(x.graph.outputs().front()->known_shape(), (Shape{7, 3, 2, 4}));
}

TEST(FuseAttention, ASequenceInFrontIsReadWhereItLies) {
  Operands x;
  // PyTorch: [sequence, batch * heads, depth], transposed and divided.
  const auto heads = [&](std::string_view name, std::int64_t length) {
    const Expr rows = transpose(x.input(name, {length, 6, 4}), {1, 0, 2});
    return reshape(rows, {2, 3, length, 4});
  };
  const Expr q = heads("queries", 3);
  const Expr y = matmul(x.softmax(matmul(q, transpose_last(heads("keys", 5)))), heads("values", 5));
  EXPECT_TRUE(x.fuse(transpose(y, {2, 0, 1, 3})));
  EXPECT_EQ(x.graph.node_count(), 4U) << print(x.graph);  // three views
  const Node& fused = *x.graph.outputs().front()->producer();
  EXPECT_EQ(fused.attributes.get_int("sequence_axis", -1), 0);
  EXPECT_EQ(fused.input(1)->known_shape(), (Shape{5, 2, 3, 4}));
}

TEST(FuseAttention, AResultThatStaysTransposedKeepsTheTransposes) {
  Operands x;
  const auto heads = [&](std::string_view name) {
    return transpose(x.input(name, {7, 5, 2, 4}), {0, 2, 1, 3});
  };
  const Expr scores = matmul(heads("queries"), transpose_last(heads("keys")));
  EXPECT_TRUE(x.fuse(matmul(x.softmax(scores), heads("values"))));
  EXPECT_EQ(x.graph.node_count(), 4U) << print(x.graph);
}

/// As PyTorch writes it for a sequence in front, from parts of [sequence, batch, 3 heads depth].
Expr attend_to_parts(Operands& x, const std::vector<Expr>& parts) {
  std::vector<Expr> heads;
  for (const Expr& part : parts) {
    heads.push_back(reshape(transpose(reshape(part, {5, 4, 4}), {1, 0, 2}), {2, 2, 5, 4}));
  }
  const Expr scores = matmul(heads[0], transpose_last(heads[1]));
  return transpose(matmul(x.softmax(scores), heads[2]), {2, 0, 1, 3});
}

TEST(FuseAttention, PartsOfOneValueAreReadThere) {
  Operands x;
  const Expr whole = x.input("whole", {5, 2, 24});
  EXPECT_TRUE(x.fuse(attend_to_parts(x, call_multi("Split", "", {whole}, 3, {{"axis", 2}}))));
  ASSERT_EQ(x.graph.node_count(), 2U) << print(x.graph);  // a view before it
  const Node& fused = *x.graph.outputs().front()->producer();
  EXPECT_EQ(fused.attributes.get_int("stack_axis", -1), 2);
  EXPECT_EQ(fused.input(0)->known_shape(), (Shape{5, 2, 3, 2, 4}));
  EXPECT_EQ(fused.input(1), nullptr);
  EXPECT_EQ(x.graph.outputs().front()->known_shape(), (Shape{5, 2, 2, 4}));
}

TEST(FuseAttention, PartsInAnotherOrderStaySplit) {
  Operands x;
  std::vector<Expr> parts =
      call_multi("Split", "", {x.input("whole", {5, 2, 24})}, 3, {{"axis", 2}});
  std::swap(parts[0], parts[1]);
  EXPECT_TRUE(x.fuse(attend_to_parts(x, parts)));
  EXPECT_FALSE(x.graph.outputs().front()->producer()->attributes.has("stack_axis"));
}

TEST(FuseAttention, OneBehindAnother) {
  Operands x;
  const Expr y = matmul(x.softmax(matmul(x.q, transpose_last(x.k))), x.v);
  const Expr k = x.input("more_keys", {2, 7, 6});
  EXPECT_TRUE(x.fuse(matmul(x.softmax(matmul(y, transpose_last(k))), k)));
  EXPECT_EQ(x.graph.node_count(), 2U) << print(x.graph);
}

/// Forms that must stay as they are.
void expect_kept(const std::function<Expr(Operands&)>& build) {
  Operands x;
  EXPECT_FALSE(x.fuse(build(x))) << print(x.graph);
}

TEST(FuseAttention, WhatElseReadsTheScoresKeepsThem) {
  expect_kept([](Operands& x) {
    const Expr scores = matmul(x.q, transpose_last(x.k));
    x.graph.add_output(scores.value());
    return matmul(x.softmax(scores), x.v);
  });
  expect_kept([](Operands& x) {
    const Expr p = x.softmax(matmul(x.q, transpose_last(x.k)));
    return matmul(p, x.v) + reduce_sum(p, {}, false);
  });
  expect_kept([](Operands& x) {
    const Expr products = matmul(x.q, transpose_last(x.k));
    return matmul(x.softmax(products * 2.0), x.v) + reduce_sum(products, {}, false);
  });
}

TEST(FuseAttention, AnotherAxisOrPlaceIsAnotherFormula) {
  expect_kept(
      [](Operands& x) { return matmul(x.softmax(matmul(x.q, transpose_last(x.k)), 1), x.v); });
  expect_kept([](Operands& x) {  // weights on the right
    return matmul(transpose_last(x.v), x.softmax(matmul(x.k, transpose_last(x.q))));
  });
  expect_kept([](Operands& x) {  // one v for both heads
    const Expr v = x.input("one_v", {5, 6});
    return matmul(x.softmax(matmul(x.q, transpose_last(x.k))), v);
  });
}

TEST(FuseAttention, AMaskThatTrainsOrAFactorThatIsNotKnownKeepsTheForm) {
  expect_kept([](Operands& x) {
    const Expr bias =
        x.builder.expr(x.graph.add_initializer("bias", Tensor::zeros(DType::f32, {3, 5})));
    bias.value()->is_variable = true;
    return matmul(x.softmax(matmul(x.q, transpose_last(x.k)) + bias), x.v);
  });
  expect_kept([](Operands& x) {
    const Expr temperature = x.input("temperature", {1});
    return matmul(x.softmax(matmul(x.q, transpose_last(x.k)) * temperature), x.v);
  });
}

}  // namespace
}  // namespace graft
