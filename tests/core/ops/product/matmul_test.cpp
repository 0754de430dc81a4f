#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "core/ops/builder.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

Tensor matrix() {
  return Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
}
Tensor other() {
  return Tensor::from<float>({3, 2}, {1, -1, 0, 2, 3, 1});
}

TEST(MatMul, Matrices) {
  const Tensor y = call_op("MatMul", {matrix(), other()})[0];
  EXPECT_EQ(y.shape(), Shape({2, 2}));
  EXPECT_THAT(floats(y), ElementsAre(10, 6, 22, 12));
}

TEST(MatMul, VectorsArePaddedAndThePaddingRemoved) {
  const Tensor v = Tensor::from<float>({3}, {1, 0, -1});
  EXPECT_EQ(call_op("MatMul", {v, v})[0].shape(), Shape({}));
  EXPECT_THAT(floats(call_op("MatMul", {v, v})[0]), ElementsAre(2));
  EXPECT_EQ(call_op("MatMul", {matrix(), v})[0].shape(), Shape({2}));
  EXPECT_THAT(floats(call_op("MatMul", {matrix(), v})[0]), ElementsAre(-2, -2));
  EXPECT_THAT(floats(call_op("MatMul", {v, other()})[0]), ElementsAre(-2, -2));
}

TEST(MatMul, BatchesBroadcast) {
  const Tensor a = Tensor::from<float>({2, 1, 1, 2}, {1, 2, 3, 4});
  const Tensor b = Tensor::from<float>({3, 2, 1}, {1, 0, 0, 1, 1, 1});
  const Tensor y = call_op("MatMul", {a, b})[0];
  EXPECT_EQ(y.shape(), Shape({2, 3, 1, 1}));
  EXPECT_THAT(floats(y), ElementsAre(1, 2, 3, 3, 4, 7));
}

TEST(MatMul, IntegersWrapAround) {
  const Tensor a = Tensor::from<std::int32_t>({1, 2}, {2147483647, 1});
  const Tensor b = Tensor::from<std::int32_t>({2, 1}, {1, 1});
  EXPECT_EQ(call_op("MatMul", {a, b})[0].values<std::int32_t>()[0], -2147483647 - 1);
}

TEST(MatMul, NothingToSumGivesZero) {
  const Tensor y =
      call_op("MatMul", {Tensor::zeros(DType::f32, {2, 0}), Tensor::zeros(DType::f32, {0, 2})})[0];
  EXPECT_THAT(floats(y), ElementsAre(0, 0, 0, 0));
}

TEST(MatMul, RefusesWhatDoesNotFit) {
  EXPECT_EQ(kind_of([] { call_op("MatMul", {matrix(), matrix()}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { call_op("MatMul", {matrix(), Tensor::scalar(1.0F)}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] {
              call_op("MatMul", {matrix(), other().cast(DType::f64)});
            }),
            ErrorKind::type);
}

TEST(MatMul, InfersNamedDims) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("batch"), Dim("time"), 4}});
  Value* const w = graph.add_input("w", {DType::f32, SymShape{4, 5}});
  const Node* const node = builder.node("MatMul", "", {x, w}, 1);
  EXPECT_EQ(*node->output()->shape(), (SymShape{Dim("batch"), Dim("time"), 5}));
}

TEST(Gemm, AlphaBetaAndTransposes) {
  const Tensor c = Tensor::from<float>({2}, {10, 20});
  const Attributes attributes{{"alpha", 0.5F}, {"beta", 2.0F}};
  EXPECT_THAT(floats(call_op("Gemm", {matrix(), other(), c}, attributes)[0]),
              ElementsAre(25, 43, 31, 46));
  // [2,3]^T [3,2]^T = [3,3]
  const Tensor both = call_op("Gemm", {matrix(), other()}, {{"transA", 1}, {"transB", 1}})[0];
  EXPECT_THAT(floats(both), ElementsAre(-3, 8, 7, -3, 10, 11, -3, 12, 15));
}

TEST(Gemm, CMustBroadcastToTheProduct) {
  const Tensor c = Tensor::zeros(DType::f32, {3});
  EXPECT_EQ(kind_of([&] { call_op("Gemm", {matrix(), other(), c}); }), ErrorKind::shape);
  const Tensor row = Tensor::from<float>({1, 2}, {1, 1});
  const Tensor thin = Tensor::zeros(DType::f32, {2, 1});
  // C is larger than the product [2,1]: ONNX broadcasts one way only.
  EXPECT_EQ(kind_of([&] {
              call_op("Gemm", {matrix(), Tensor::zeros(DType::f32, {3, 1}), row});
            }),
            ErrorKind::shape);
  EXPECT_THAT(floats(call_op("Gemm", {matrix(), other(), thin})[0]), ElementsAre(10, 6, 22, 12));
}

TEST(BatchedMatMul, ReadsTransposedOperands) {
  const Tensor a = Tensor::from<float>({2, 2, 1}, {1, 2, 3, 4});
  const Tensor b = Tensor::from<float>({2, 1, 2}, {1, 1, 2, 0});
  const Tensor y = call_internal_op("BatchedMatMul", {a, b}, {{"transA", 1}, {"transB", 1}})[0];
  EXPECT_EQ(y.shape(), Shape({2, 1, 1}));
  EXPECT_THAT(floats(y), ElementsAre(3, 6));
}

Tensor waves(const Shape& shape, float phase) {
  Tensor tensor = Tensor::zeros(DType::f32, shape);
  float at = phase;
  for (float& value : tensor.values<float>()) value = std::sin(at += 0.7F);
  return tensor;
}

/// y = x w + b, with w and b in the file or given at each run.
std::vector<float> gemm(const Tensor& x, const Tensor& w, const Tensor& b, bool in_file) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  const auto add = [&](const char* name, const Tensor& tensor, bool is_known) {
    return is_known ? graph.add_initializer(name, tensor)
                    : graph.add_input(name, {DType::f32, SymShape(tensor.shape())});
  };
  const std::vector<Value*> inputs{add("x", x, false), add("w", w, in_file), add("b", b, in_file)};
  graph.add_output(graph.add_node("Gemm", "", inputs, {"y"})->output());
  Session session(model);
  return floats(in_file ? session.run({x}).front() : session.run({x, w, b}).front());
}

/// The one is brought into another layout before the run, the other in it.
TEST(MatMul, MatricesOfTheFileGiveWhatGivenOnesGive) {
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{8, 300, 1100}, {3, 1100, 70}}) {
    const Tensor x = waves({m, k}, 1);
    const Tensor w = waves({k, n}, 2);
    const Tensor b = waves({n}, 3);
    const std::vector<float> known = gemm(x, w, b, true);
    EXPECT_EQ(known.size(), static_cast<std::size_t>(m * n));
    EXPECT_THAT(known, ::testing::Pointwise(::testing::FloatNear(1e-4F), gemm(x, w, b, false)));
  }
}

}  // namespace
}  // namespace graft
