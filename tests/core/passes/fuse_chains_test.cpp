#include <gtest/gtest.h>

#include <random>

#include "core/graph/print.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"

namespace graft {
namespace {

class FuseChains : public testing::Test {
 protected:
  Value* input(std::string_view name, const Shape& shape) {
    return graph_.add_input(name, {DType::f32, SymShape(shape)});
  }
  Value* add(std::string_view op, const std::vector<Value*>& inputs, const std::string& output) {
    return graph_.add_node(op, "", inputs, {output})->output();
  }
  std::string fused() {
    passes::infer_shapes(graph_);
    passes::fuse_chains(graph_, cpu());
    return print(graph_);
  }
  /// Whether the pass leaves the graph as it is.
  bool stays() {
    passes::infer_shapes(graph_);
    const std::string before = print(graph_);
    return !passes::fuse_chains(graph_, cpu()) && print(graph_) == before;
  }

  Graph graph_{"net"};
};

TEST_F(FuseChains, AChainBecomesOneNode) {
  Value* const x = input("x", {2, 3});
  Value* const two = graph_.add_initializer("two", Tensor::scalar(2.0F));
  Value* const row = graph_.add_initializer("row", Tensor::zeros(DType::f32, {3}));
  Value* const product = add("Mul", {x, two}, "product");
  Value* const sum = add("Add", {product, row}, "sum");
  graph_.add_output(add("Relu", {sum}, "y"));
  EXPECT_EQ(fused(), R"(net(x: f32[2,3]) -> (y: f32[2,3])
  two: f32[] = {2.0}
  row: f32[3] = initializer
  y: f32[2,3] = ai.graft.ElementwiseChain(x, row)
    body = chain(x: ?, row: ?) -> (y: ?)
      two: f32[] = {2.0}
      product: ? = Mul(x, two)
      sum: ? = Add(product, row)
      y: ? = Relu(sum)
)");
}

TEST_F(FuseChains, ATreeMeetsInItsLastNodeAndWhatOthersReadIsAnOutput) {
  Value* const x = input("x", {2, 2});
  Value* const a = add("Exp", {x}, "a");
  Value* const b = add("Neg", {x}, "b");
  Value* const c = add("Mul", {a, b}, "c");
  graph_.add_output(add("MatMul", {c, b}, "y"));
  EXPECT_EQ(fused(), R"(net(x: f32[2,2]) -> (y: f32[2,2])
  b: f32[2,2], c: f32[2,2] = ai.graft.ElementwiseChain(x)
    body = chain(x: ?) -> (b: ?, c: ?)
      a: ? = Exp(x)
      b: ? = Neg(x)
      c: ? = Mul(a, b)
  y: f32[2,2] = MatMul(c, b)
)");
}

TEST_F(FuseChains, AReaderBeforeTheLastLinkEndsTheChain) {
  Value* const x = input("x", {2, 2});
  Value* const a = add("Exp", {x}, "a");
  Value* const m = add("MatMul", {a, a}, "m");
  graph_.add_output(add("Add", {a, m}, "y"));
  EXPECT_TRUE(stays());
}

/// Exp could wait for Add, and keep one value where it kept one; Mul would keep two.
TEST_F(FuseChains, ALinkWaitsOnlyIfThatTakesNoMoreMemory) {
  Value* const x = input("x", {2, 2});
  Value* const m = add("MatMul", {x, x}, "m");
  Value* const n = add("MatMul", {m, x}, "n");
  Value* const product = add("Mul", {m, n}, "product");
  Value* const other = add("MatMul", {x, x}, "other");
  graph_.add_output(add("Add", {product, other}, "y"));
  EXPECT_TRUE(stays());
}

TEST_F(FuseChains, ALinkWithOneOperandMayWait) {
  Value* const x = input("x", {2, 2});
  Value* const m = add("MatMul", {x, x}, "m");
  Value* const e = add("Exp", {m}, "e");
  Value* const other = add("MatMul", {x, x}, "other");
  graph_.add_output(add("Add", {e, other}, "y"));
  EXPECT_EQ(fused(), R"(net(x: f32[2,2]) -> (y: f32[2,2])
  m: f32[2,2] = MatMul(x, x)
  other: f32[2,2] = MatMul(x, x)
  y: f32[2,2] = ai.graft.ElementwiseChain(m, other)
    body = chain(m: ?, other: ?) -> (y: ?)
      e: ? = Exp(m)
      y: ? = Add(e, other)
)");
}

TEST_F(FuseChains, AResultThatBroadcastsIsNoLink) {
  Value* const row = add("Neg", {input("row", {3})}, "negative");
  graph_.add_output(add("Add", {input("x", {2, 3}), row}, "y"));
  EXPECT_TRUE(stays());
}

TEST_F(FuseChains, ShortRowsThatRepeatAreLeftToSingleOps) {
  Value* const sum = add("Add", {input("x", {1000, 32}), input("row", {32})}, "sum");
  graph_.add_output(add("Relu", {sum}, "y"));
  EXPECT_TRUE(stays());
}

TEST_F(FuseChains, ALinkReadsAVariableBeforeItsUpdate) {
  Value* const w = graph_.add_initializer("w", Tensor::zeros(DType::f32, {3}));
  w->is_variable = true;
  Value* const x = input("x", {3});
  Value* const old = add("Mul", {w, x}, "old");
  graph_.add_node("Assign", kInternalDomain, {w, x}, {"new"});
  graph_.add_output(add("Neg", {old}, "y"));
  EXPECT_TRUE(stays());
}

TEST_F(FuseChains, LinksHaveOneLayout) {
  Value* const x = input("x", {2, 3, 4, 4});
  Value* const a = add("Neg", {x}, "a");
  Value* const b = add("Exp", {a}, "b");
  graph_.add_output(add("Relu", {b}, "y"));
  a->layout = b->layout = Layout::channels_last;
  passes::infer_shapes(graph_);
  EXPECT_TRUE(passes::fuse_chains(graph_, cpu()));
  EXPECT_EQ(print(graph_), R"(net(x: f32[2,3,4,4]) -> (y: f32[2,3,4,4])
  b: f32[2,3,4,4] nhwc = ai.graft.ElementwiseChain(x)
    body = chain(x: ?) -> (b: ?)
      a: ? = Neg(x)
      b: ? = Exp(a)
  y: f32[2,3,4,4] = Relu(b)
)");
}

TEST_F(FuseChains, ChainsOfOneFormShareABody) {
  const auto chain = [&](const std::string& name, const char* first, double factor) {
    Value* const x = input("x" + name, {2, 2});
    Value* const two = graph_.add_initializer("f" + name, Tensor::full(DType::f32, {}, factor));
    Value* const a = add(first, {x, two}, "a" + name);
    graph_.add_output(add("Relu", {a}, "y" + name));
  };
  chain("1", "Mul", 2.0);
  chain("2", "Mul", 2.0);
  chain("3", "Mul", 3.0);
  chain("4", "Add", 2.0);
  fused();
  std::vector<const Graph*> bodies;
  for (const auto& node : graph_.nodes()) {
    for_each_body(*node, [&](const Graph& body) { bodies.push_back(&body); });
  }
  ASSERT_EQ(bodies.size(), 4U);
  EXPECT_EQ(bodies[0], bodies[1]);
  EXPECT_NE(bodies[0], bodies[2]) << "another constant";
  EXPECT_NE(bodies[0], bodies[3]) << "another op";
  EXPECT_EQ(print(*graph_.clone()), print(graph_));
}

/// What a plan gives, with and without chains.
std::vector<Tensor> results(const Graph& graph, const std::vector<Tensor>& inputs, bool fuses) {
  Plan plan(graph.clone(), {.fuses_chains = fuses});
  plan.run(inputs);
  std::vector<Tensor> all;
  for (int i = 0; i < plan.output_count(); ++i) all.push_back(plan.output(i).clone());
  return all;
}

void expect_same_bits(const Graph& graph) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-3, 3);
  std::vector<Tensor> inputs;
  for (const Value* input : graph.inputs()) {
    inputs.push_back(Tensor::empty(DType::f32, input->known_shape()));
    for (float& value : inputs.back().values<float>()) value = number(random);
  }
  const std::vector<Tensor> wanted = results(graph, inputs, false);
  const std::vector<Tensor> found = results(graph, inputs, true);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(equal_bits(found[i], wanted[i])) << "output " << i;
  }
}

/// Gelu as exporters write it, its derivative, and results that take the memory of operands.
TEST_F(FuseChains, ResultsAreTheSameBits) {
  Builder builder(graph_);
  const Expr x = builder.expr(input("x", {7, 4999}));
  const Expr dy = builder.expr(input("dy", {7, 4999}));
  const Expr row = builder.expr(input("row", {4999}));
  const Expr t = (x + row) / 1.4142135;
  const Expr phi = (call("Erf", {t}) + 1.0) * 0.5;
  const Expr dx = dy * (phi + t * exp(-pow(t, 2.0)) * 0.7978846);
  graph_.add_output((x * phi).value());
  graph_.add_output(dx.value());
  graph_.add_output(where(greater(dx, dy), call("Tanh", {dx}), phi - dx).value());
  graph_.add_output(call("Clip", {dx * x, constant_like(x, -0.5)}).value());
  passes::infer_shapes(graph_);
  expect_same_bits(graph_);
}

TEST_F(FuseChains, ResultsBetweenConvolutionsAreTheSameBits) {
  Value* const x = input("x", {2, 3, 9, 11});
  Value* const w = graph_.add_initializer("w", Tensor::full(DType::f32, {5, 3, 3, 3}, 0.1));
  Value* const v = graph_.add_initializer("v", Tensor::full(DType::f32, {4, 5, 3, 3}, -0.2));
  Value* const scale = input("scale", {5, 1, 1});
  Value* const c = add("Conv", {x, w}, "c");
  Value* const scaled = add("Mul", {c, scale}, "scaled");
  Value* const r = add("Sigmoid", {scaled}, "r");
  Value* const s = add("Mul", {r, c}, "s");
  graph_.add_output(add("Conv", {s, v}, "y"));
  passes::infer_shapes(graph_);
  expect_same_bits(graph_);
}

}  // namespace
}  // namespace graft
