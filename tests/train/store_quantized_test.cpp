#include "train/store_quantized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/verify.h"
#include "core/ops/builder.h"
#include "core/runtime/session.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// y = x dequantize(quantize(w)), as training with quantization in mind leaves it.
TEST(StoreQuantized, KeepsAnswersAndOneByteANumber) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}}));
  const Expr w =
      builder.expr(graph.add_initializer("w", Tensor::from<float>({2, 2}, {1, -0.26F, 9, 0})));
  const Expr scale = builder.expr(graph.add_initializer("scale", Tensor::scalar(0.25F)));
  const Expr zero = builder.expr(graph.add_initializer("zero", Tensor::scalar<std::int8_t>(3)));
  const Expr stored = call("QuantizeLinear", {w, scale, zero});
  graph.rename(stored.value(), "w_stored");
  const Expr rounded = call("DequantizeLinear", {stored, scale, zero});
  graph.add_output(matmul(x, rounded).value());
  const Tensor input = Tensor::from<float>({1, 2}, {1, 2});
  const std::vector<double> before = to_double(Session(model).run({input}).at(0));
  EXPECT_THAT(edit::store_quantized(model), ElementsAre("w_stored"));
  verify(model);
  EXPECT_EQ(graph.find("w"), nullptr);
  EXPECT_THAT(to_double(graph.find("w_stored")->initializer()), ElementsAre(7, 2, 39, 3));
  EXPECT_EQ(to_double(Session(model).run({input}).at(0)), before);
  EXPECT_THAT(edit::store_quantized(model), IsEmpty());
}

/// Reshapes whose shape is what they reshape: each doubles the ways to the first one.
TEST(StoreQuantized, SeesEachValueOnce) {
  Model model;
  model.set_opset("", 21);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::i8, SymShape{Dim("N")}}));
  Expr shape = builder.expr(graph.add_initializer("one", Tensor::from<std::int64_t>({1}, {1})));
  for (int i = 0; i < 60; ++i) shape = call("Reshape", {shape, shape});
  const Expr w =
      call("Reshape", {builder.expr(graph.add_initializer("w", Tensor::scalar(0.5F))), shape});
  const Expr scale = builder.expr(graph.add_initializer("scale", Tensor::scalar(0.25F)));
  const Expr zero = builder.expr(graph.add_initializer("zero", Tensor::scalar<std::int8_t>(3)));
  const Expr stored = call("QuantizeLinear", {w, scale, zero});
  graph.rename(stored.value(), "w_stored");
  graph.add_output((x + stored).value());
  EXPECT_THAT(edit::store_quantized(model), ElementsAre("w_stored"));
  verify(model);
  EXPECT_EQ(graph.nodes().size(), 1U);
  EXPECT_THAT(to_double(graph.find("w_stored")->initializer()), ElementsAre(5));
}

}  // namespace
}  // namespace graft
