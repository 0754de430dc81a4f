#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/ops/kernel.h"
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
    changed_ = passes::compute_in_bf16(graph_, cpu());
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
  Value* const x = graph_.add_input("x", {DType::f32, SymShape(Shape({200, 128}))});
  Value* const w = variable("w", {128, 128});
  Value* const h = add("MatMul", "", {x, w}, {"h"});
  Value* const y = add("Gemm", "", {h, x, nullptr}, {"y"});
  y->producer()->attributes.set({"transB", 1});
  graph_.add_output(add("Exp", "", {y}, {"e"}));
  EXPECT_EQ(lowered(), R"(net(x: f32[200,128]) -> (e: f32[200,200])
  w: f32[128,128] = variable
  bf16/cast: bf16[200,128] = Cast(x) {to = 16}
  bf16/cast_1: bf16[128,128] = Cast(w) {to = 16}
  h: bf16[200,128] = MatMul(bf16/cast, bf16/cast_1)
  bf16/cast_2: f32[200,128] = Cast(h) {to = 1}
  y: bf16[200,200] = Gemm(h, bf16/cast, _) {transB = 1}
  bf16/cast_3: f32[200,200] = Cast(y) {to = 1}
  e: f32[200,200] = Exp(bf16/cast_3)
)");
  EXPECT_TRUE(changed_);
}

/// Behind a convolution a normalization takes what was rounded anyway, with statistics and
/// parameters in f32; the result of the graph is f32 again.
TEST_F(ComputeInBf16, NormalizationsFollowWithParametersInF32) {
  Value* const x = graph_.add_input("x", {DType::f32, SymShape(Shape({4, 64, 16, 16}))});
  std::vector<Value*> inputs{add("Conv", "", {x, variable("w", {64, 64, 1, 1})}, {"c"})};
  for (const char* name : {"scale", "bias", "mean", "var"}) inputs.push_back(variable(name, {64}));
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

/// A product of few multiply-adds, or of few for each number that would have to be rounded.
TEST_F(ComputeInBf16, ProductsThatGainTooLittleStay) {
  Value* const few = graph_.add_input("few", {DType::f32, SymShape(Shape({64, 64}))});
  Value* const row = graph_.add_input("row", {DType::f32, SymShape(Shape({4, 2048}))});
  graph_.add_output(add("MatMul", "", {few, variable("w", {64, 64})}, {"a"}));
  graph_.add_output(add("MatMul", "", {row, variable("v", {2048, 2048})}, {"b"}));
  lowered();
  EXPECT_FALSE(changed_);
}

/// Only where a kernel multiplies the tiles of an attention in bf16; statistics stay f32.
TEST_F(ComputeInBf16, AttentionGoesWhereItHasAKernel) {
  const Shape shape{2, 256, 3, 2, 32};
  const Attributes attributes{{"sequence_axis", 1}, {"stack_axis", 2}};
  const auto attention = [&](Graph& graph, DType dtype) {
    Value* const x = graph.add_input("x", {dtype, SymShape(shape)});
    return graph.add_node("TiledAttention", kInternalDomain, {x}, {"y", "sums"}, attributes);
  };
  const Node* const node = attention(graph_, DType::f32);
  graph_.add_output(node->output(0));
  graph_.add_output(node->output(1));
  lowered();
  Graph alone("alone");
  const Node* const twin = attention(alone, DType::bf16);
  passes::infer_shapes(alone);
  const bool has_kernel = static_cast<bool>(find_kernel(*twin, cpu()).run);
  EXPECT_EQ(changed_, has_kernel);
  EXPECT_EQ(node->input(0)->dtype(), has_kernel ? DType::bf16 : DType::f32);
  EXPECT_EQ(node->output(1)->dtype(), DType::f32);
  EXPECT_EQ(graph_.outputs()[0]->dtype(), DType::f32);
}

class ProductInBf16 : public ComputeInBf16 {
 protected:
  ProductInBf16() {
    Value* const x = graph_.add_input("x", {DType::f32, SymShape(Shape({256, 128}))});
    y_ = add("MatMul", "", {x, variable("w", {128, 128})}, {"y"});
  }
  Value* constant(const std::string& name, float number) {
    return graph_.add_initializer(name, Tensor::full(DType::f32, Shape{}, number));
  }
  /// The type of y op `other`.
  DType joined(std::string_view op, Value* other) {
    Value* const z = add(op, "", {y_, other}, {"z"});
    graph_.add_output(add("Relu", "", {z}, {"r"}));
    lowered();
    return z->dtype();
  }

  Value* y_;
};

TEST_F(ProductInBf16, BiasesFollow) {
  EXPECT_EQ(joined("Add", variable("bias", {128})), DType::bf16);
}
TEST_F(ProductInBf16, WhatIsRoundedFollows) {
  EXPECT_EQ(joined("Add", add("Relu", "", {y_}, {"h"})), DType::bf16);
}
TEST_F(ProductInBf16, SumsWithF32StayInF32) {
  EXPECT_EQ(joined("Add", graph_.find("x")), DType::f32);
}
TEST_F(ProductInBf16, ExactConstantsFollow) {
  EXPECT_EQ(joined("Mul", constant("half", 0.5F)), DType::bf16);
}
TEST_F(ProductInBf16, OtherConstantsKeepTheirDigits) {
  EXPECT_EQ(joined("Div", constant("third", 0.3333333F)), DType::f32);
}

/// All parts are widened for their readers, and no two values lie in memory twice.
TEST_F(ProductInBf16, EveryOutputOfANodeFollows) {
  Node* const split = graph_.add_node("Split", "", {y_}, {"a", "b"}, {{"axis", 1}});
  split->attributes.set({"num_outputs", 2});
  graph_.add_output(add("Exp", "", {split->output(0)}, {"ea"}));
  graph_.add_output(add("Exp", "", {split->output(1)}, {"eb"}));
  lowered();
  EXPECT_EQ(split->output(0)->dtype(), DType::bf16);
  EXPECT_EQ(split->output(1)->dtype(), DType::bf16);
  EXPECT_EQ(graph_.outputs()[1]->dtype(), DType::f32);
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
