#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

/// 256 rows of 16, 32 hidden values, 16 results.
struct Operands : test::SmallNet {
  explicit Operands(DType dtype = DType::f32, std::int64_t rows = 256, std::int64_t width = 16,
                    std::int64_t hidden = 32) {
    x = input("x", {rows / 4, 4, width}, dtype);
    w1 = input("w1", {width, hidden}, dtype);
    b1 = input("b1", {hidden}, dtype);
    w2 = input("w2", {hidden, 16}, dtype);
    b2 = input("b2", {16}, dtype);
  }
  /// Whether the pass makes one node of the graph that gives y, or leaves it alone.
  bool fuse(const Expr& y) {
    graph.add_output(y.value());
    const bool changed = passes::fuse_feed_forward(graph);
    EXPECT_EQ(changed, graph.nodes().back()->is("FeedForward", kInternalDomain));
    return changed;
  }

  Expr x;
  Expr w1;
  Expr b1;
  Expr w2;
  Expr b2;
};

Expr relu(const Expr& x) {
  return call("Relu", {x});
}

TEST(FuseFeedForward, ProductsAndSumsBecomeOneNode) {
  Operands o;
  EXPECT_TRUE(o.fuse(o.b2 + matmul(relu(o.b1 + matmul(o.x, o.w1)), o.w2)));
  EXPECT_EQ(
      print(o.graph),
      R"(net(x: f32[64,4,16], w1: f32[16,32], b1: f32[32], w2: f32[32,16], b2: f32[16]) -> (add_1: f32[64,4,16])
  add_1: f32[64,4,16] = ai.graft.FeedForward(x, w1, w2, b1, b2) {activation = "Relu"}
)");
  EXPECT_FALSE(passes::fuse_feed_forward(o.graph));
}

TEST(FuseFeedForward, BiasesMayBeMissing) {
  Operands o;
  EXPECT_TRUE(o.fuse(matmul(call("Gelu", {matmul(o.x, o.w1)}, {{"approximate", "tanh"}}), o.w2)));
  const Node& fused = *o.graph.nodes().back();
  EXPECT_EQ(fused.input(3), nullptr);
  EXPECT_EQ(fused.input(4), nullptr);
  EXPECT_EQ(fused.attributes.get_string("approximate", ""), "tanh");
}

TEST(FuseFeedForward, GemmsToo) {
  Operands o;
  const Expr x = reshape(o.x, {256, 16});
  const Expr h = call("Gemm", {x, transpose_last(o.w1), o.b1}, {{"transB", 1}});
  EXPECT_TRUE(o.fuse(call("Gemm", {relu(h), o.w2, o.b2})));
  const Node& fused = *o.graph.nodes().back();
  EXPECT_EQ(fused.input(1)->known_shape(), (Shape{16, 32}));
  EXPECT_EQ(fused.input(3), o.b1.value());
  EXPECT_EQ(fused.input(4), o.b2.value());
  Operands scaled;
  const Expr rows = reshape(scaled.x, {256, 16});
  const Expr half = call("Gemm", {rows, scaled.w1}, {{"alpha", AttributeValue(0.5F)}});
  EXPECT_FALSE(scaled.fuse(matmul(relu(half), scaled.w2)));
}

TEST(FuseFeedForward, AnAddendThatIsNoBiasStaysOutside) {
  Operands o;
  EXPECT_TRUE(o.x.shape() == (Shape{64, 4, 16}));
  const Expr y = matmul(relu(matmul(o.x, o.w1) + o.b1), o.w2);
  o.graph.add_output((o.x + y).value());
  EXPECT_TRUE(passes::fuse_feed_forward(o.graph));
  EXPECT_EQ(o.graph.node_count(), 2U);
}

TEST(FuseFeedForward, HiddenValuesThatAreReadStay) {
  Operands read;
  const Expr h = matmul(read.x, read.w1) + read.b1;
  read.graph.add_output(h.value());
  EXPECT_FALSE(read.fuse(matmul(relu(h), read.w2)));
  Operands gated;
  const Expr a = relu(matmul(gated.x, gated.w1));
  EXPECT_FALSE(gated.fuse(matmul(a * gated.b1, gated.w2)));
}

TEST(FuseFeedForward, OnlyWhereItPays) {
  const auto fuses = [](Operands&& o) {
    return o.fuse(matmul(relu(matmul(o.x, o.w1) + o.b1), o.w2) + o.b2);
  };
  EXPECT_TRUE(fuses(Operands()));
  EXPECT_FALSE(fuses(Operands(DType::f64)));
  EXPECT_FALSE(fuses(Operands(DType::f32, 128)));
  EXPECT_FALSE(fuses(Operands(DType::f32, 256, 32)));  // hidden values are no wider
  EXPECT_FALSE(fuses(Operands(DType::f32, 256, 15)));
  EXPECT_TRUE(fuses(Operands(DType::f32, 256, 112, 224)));
  EXPECT_FALSE(fuses(Operands(DType::f32, 256, 128, 256)));  // long sums are stored
}

}  // namespace
}  // namespace graft
