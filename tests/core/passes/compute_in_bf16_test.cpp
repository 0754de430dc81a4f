#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

class ComputeInBf16 : public testing::Test {
 protected:
  Value* variable(const std::string& name, const Shape& shape) {
    Value* const value = graph_.add_initializer(name, Tensor::zeros(DType::f32, shape));
    value->is_variable = true;
    return value;
  }
  Value* add(std::string_view op, std::string_view domain, const std::vector<Value*>& inputs,
             const std::vector<std::string>& outputs) {
    return graph_.add_node(op, domain, inputs, outputs)->output();
  }
  std::string lowered() {
    passes::infer_shapes(graph_);
    changed_ = passes::compute_in_bf16(graph_);
    const std::string text = print(graph_);
    passes::infer_shapes(graph_);  // the types that the pass wrote are those of inference
    EXPECT_EQ(print(graph_), text);
    return text;
  }

  Graph graph_{"net"};
  bool changed_ = false;
};

/// One cast of x serves both products; h goes on without a way through f32.
TEST_F(ComputeInBf16, ProductsReadAndWriteIt) {
  Value* const x = graph_.add_input("x", {DType::f32, SymShape(Shape({2, 3}))});
  Value* const w = variable("w", {3, 3});
  Value* const h = add("MatMul", "", {x, w}, {"h"});
  Value* const y = add("Gemm", "", {h, x, nullptr}, {"y"});
  y->producer()->attributes.set({"transB", 1});
  graph_.add_output(add("Exp", "", {y}, {"e"}));
  EXPECT_EQ(lowered(), R"(net(x: f32[2,3]) -> (e: f32[2,2])
  w: f32[3,3] = variable
  bf16/cast: bf16[2,3] = Cast(x) {to = 16}
  bf16/cast_1: bf16[3,3] = Cast(w) {to = 16}
  h: bf16[2,3] = MatMul(bf16/cast, bf16/cast_1)
  bf16/cast_2: f32[2,3] = Cast(h) {to = 1}
  y: bf16[2,2] = Gemm(h, bf16/cast, _) {transB = 1}
  bf16/cast_3: f32[2,2] = Cast(y) {to = 1}
  e: f32[2,2] = Exp(bf16/cast_3)
)");
  EXPECT_TRUE(changed_);
}

/// Behind a convolution a normalization takes what was rounded anyway, with statistics and
/// parameters in f32; the result of the graph is f32 again.
TEST_F(ComputeInBf16, NormalizationsFollowWithParametersInF32) {
  Value* const x = graph_.add_input("x", {DType::f32, SymShape(Shape({2, 3, 4, 4}))});
  std::vector<Value*> inputs{add("Conv", "", {x, variable("w", {3, 3, 1, 1})}, {"c"})};
  for (const char* name : {"scale", "bias", "mean", "var"}) inputs.push_back(variable(name, {3}));
  Value* const n = add("BatchNormTraining", kInternalDomain, inputs, {"n", "m", "s", "nm", "nv"});
  graph_.add_output(add("Relu", "", {n}, {"r"}));
  lowered();
  EXPECT_EQ(graph_.find("c")->dtype(), DType::bf16);
  EXPECT_EQ(n->producer()->input(0), graph_.find("c"));
  EXPECT_EQ(n->producer()->input(1), graph_.find("scale"));
  EXPECT_EQ(n->dtype(), DType::bf16);
  EXPECT_EQ(graph_.find("m")->dtype(), DType::f32);
  EXPECT_EQ(graph_.find("r")->producer()->input(0), n);
  EXPECT_EQ(graph_.outputs()[0]->dtype(), DType::f32);
}

TEST_F(ComputeInBf16, OtherOpsStayAsTheyAre) {
  Value* const x = graph_.add_input("x", {DType::f32, SymShape(Shape({2, 3}))});
  graph_.add_output(add("Softmax", "", {add("Relu", "", {x}, {"r"})}, {"y"}));
  const std::string before = [&] {
    passes::infer_shapes(graph_);
    return print(graph_);
  }();
  EXPECT_EQ(lowered(), before);
  EXPECT_FALSE(changed_);
}

TEST_F(ComputeInBf16, ProductsOfOtherTypesStay) {
  Value* const x = graph_.add_input("x", {DType::f64, SymShape(Shape({2, 2}))});
  graph_.add_output(add("MatMul", "", {x, x}, {"y"}));
  lowered();
  EXPECT_FALSE(changed_);
}

}  // namespace
}  // namespace graft
