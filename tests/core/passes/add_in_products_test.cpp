#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

TEST(AddInProducts, ABiasThatIsSpelledOut) {
  test::SmallNet net;
  const Expr y = call("MatMul", {net.input("x", {4, 3}), net.input("w", {3, 5})});
  net.graph.add_output(call("Add", {net.input("bias", {5}), y}).value());
  EXPECT_TRUE(passes::add_in_products(net.graph));
  EXPECT_EQ(print(net.graph),
            R"(net(x: f32[4,3], w: f32[3,5], bias: f32[5]) -> (add: f32[4,5])
  add: f32[4,5] = Gemm(x, w, bias)
)");
  EXPECT_FALSE(passes::add_in_products(net.graph));
}

TEST(AddInProducts, AMatrixForABatchOfRows) {
  test::SmallNet net;
  const Expr x = net.input("x", {2, 4, 3});
  const Expr y = call("MatMul", {x, net.input("w", {3, 3})});
  net.graph.add_output(call("Add", {y, x}).value());
  EXPECT_TRUE(passes::add_in_products(net.graph));
  EXPECT_EQ(print(net.graph),
            R"(net(x: f32[2,4,3], w: f32[3,3]) -> (add: f32[2,4,3])
  constant: i64[2] = {8, 3}
  constant_1: i64[2] = {8, 3}
  constant_2: i64[3] = {2, 4, 3}
  reshape: f32[8,3] = Reshape(x, constant) {allowzero = 1}
  reshape_1: f32[8,3] = Reshape(x, constant_1) {allowzero = 1}
  gemm: f32[8,3] = Gemm(reshape, w, reshape_1)
  add: f32[2,4,3] = Reshape(gemm, constant_2) {allowzero = 1}
)");
}

/// As in gradients of a value with two readers: the second product adds to the first.
TEST(AddInProducts, OfTwoProductsTheLaterOne) {
  test::SmallNet net;
  const Attributes transposed{{"transB", 1}, {"alpha", 0.5F}};
  const Expr a = call("Gemm", {net.input("a", {4, 3}), net.input("v", {3, 5})});
  const Expr b = call("Gemm", {net.input("b", {4, 2}), net.input("w", {5, 2})}, transposed);
  net.graph.add_output(call("Add", {b, a}).value());
  EXPECT_TRUE(passes::add_in_products(net.graph));
  const Node& last = *net.graph.nodes().back();
  EXPECT_EQ(last.input(0)->name(), "b");
  EXPECT_EQ(last.input(2), net.graph.nodes().front()->output());
  EXPECT_EQ(last.attributes.get_int("transB", 0), 1);
  EXPECT_EQ(last.attributes.get_float("alpha", 1.0F), 0.5F);
  EXPECT_EQ(net.graph.nodes().size(), 2U);
}

/// Without C, beta says nothing, so it must not come to scale what is added.
TEST(AddInProducts, TheAddendIsNotScaled) {
  test::SmallNet net;
  const Attributes idle{{"beta", 0.5F}};
  const Expr y = call("Gemm", {net.input("x", {4, 3}), net.input("w", {3, 5})}, idle);
  net.graph.add_output(call("Add", {y, net.input("bias", {5})}).value());
  EXPECT_TRUE(passes::add_in_products(net.graph));
  EXPECT_FALSE(net.graph.nodes().back()->attributes.has("beta"));
}

/// Whether the sum of a product [4,3] x `w` and `addend` is joined.
bool joins(const Shape& w, const Shape& addend, DType dtype = DType::f32) {
  test::SmallNet net;
  const Expr y = call("MatMul", {net.input("x", {4, 3}, dtype), net.input("w", w, dtype)});
  net.graph.add_output(call("Add", {y, net.input("addend", addend, dtype)}).value());
  return passes::add_in_products(net.graph);
}

TEST(AddInProducts, OtherSumsStay) {
  EXPECT_TRUE(joins({3, 5}, {4, 5}));
  EXPECT_TRUE(joins({3, 5}, {1, 5}));
  EXPECT_TRUE(joins({3, 5}, {5}, DType::f64));
  EXPECT_TRUE(joins({3, 5}, {5}, DType::bf16));
  EXPECT_FALSE(joins({3, 5}, {4, 1}));
  EXPECT_FALSE(joins({3, 5}, {}));
  EXPECT_FALSE(joins({3, 5}, {2, 4, 5}));            // the product is repeated
  EXPECT_FALSE(joins({3, 1}, {5}));                  // so is its column
  EXPECT_FALSE(joins({2, 3, 5}, {5}));               // two products
  EXPECT_FALSE(joins({3, 5}, {4, 5}, DType::bf16));  // would be rounded before the product is added
  EXPECT_FALSE(joins({3, 5}, {5}, DType::i32));
}

TEST(AddInProducts, AProductThatOthersReadStays) {
  test::SmallNet net;
  const Expr y = call("MatMul", {net.input("x", {4, 3}), net.input("w", {3, 5})});
  net.graph.add_output(call("Add", {y, net.input("bias", {5})}).value());
  net.graph.add_output(y.value());
  EXPECT_FALSE(passes::add_in_products(net.graph));
}

}  // namespace
}  // namespace graft
