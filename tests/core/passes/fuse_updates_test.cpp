#include <gmock/gmock.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// v += g; p -= rate * v: what a formula of an optimizer adds to a step.
class FuseUpdates : public testing::Test {
 protected:
  Value* variable(std::string_view name) {
    Value* const value = graph_.add_initializer(name, Tensor::zeros(DType::f32, {2, 3}));
    value->is_variable = true;
    return value;
  }
  Value* add(std::string_view op, const std::vector<Value*>& inputs, const std::string& output) {
    return graph_.add_node(op, "", inputs, {output})->output();
  }
  Value* assign(Value* to, Value* content, const std::string& output) {
    return graph_.add_node("Assign", kInternalDomain, {to, content}, {output})->output();
  }
  std::string fused() {
    passes::infer_shapes(graph_);
    passes::fuse_updates(graph_, cpu());
    return print(graph_);
  }

  Graph graph_{"net"};
  Value* p_ = variable("p");
  Value* v_ = variable("v");
  Value* g_ = graph_.add_input("g", {DType::f32, SymShape{2, 3}});
  Value* rate_ = graph_.add_input("rate", {DType::f32, SymShape(Shape{})});
  Value* velocity_ = add("Add", {v_, g_}, "velocity");
  Value* moved_ = add("Sub", {p_, add("Mul", {velocity_, rate_}, "way")}, "moved");
};

TEST_F(FuseUpdates, TheFormulaWritesTheVariables) {
  assign(v_, velocity_, "v.new");
  graph_.add_output(assign(p_, moved_, "p.new"));
  EXPECT_EQ(fused(), R"(net(g: f32[2,3], rate: f32[]) -> (p.new: f32[2,3])
  p: f32[2,3] = variable
  v: f32[2,3] = variable
  v.new: f32[2,3], p.new: f32[2,3] = ai.graft.UpdateChain(v, p, g, rate)
    body = chain(v: ?, p: ?, g: ?, rate: ?) -> (velocity: ?, moved: ?)
      velocity: ? = Add(v, g)
      way: ? = Mul(velocity, rate)
      moved: ? = Sub(p, way)
)");
}

/// What a state takes over is no formula; the parameter is written behind it.
TEST_F(FuseUpdates, AStateMayBecomeWhatTheParameterWas) {
  Value* const before = variable("before");
  assign(before, p_, "before.new");
  assign(v_, velocity_, "v.new");
  assign(p_, moved_, "p.new");
  const std::string text = fused();
  EXPECT_THAT(text, HasSubstr("before.new: f32[2,3] = ai.graft.Assign(before, p)\n"
                              "  v.new: f32[2,3], p.new: f32[2,3] = ai.graft.UpdateChain("));
}

TEST_F(FuseUpdates, WhatOthersReadOfTheFormulaStaysOutside) {
  Value* const double_gradient = add("Add", {g_, g_}, "double");
  assign(p_, add("Sub", {p_, double_gradient}, "less"), "p.new");
  graph_.add_output(double_gradient);
  EXPECT_THAT(fused(), HasSubstr("p.new: f32[2,3] = ai.graft.UpdateChain(p, double)"));
}

TEST_F(FuseUpdates, NotWhereAResultIsReadByOthers) {
  assign(p_, moved_, "p.new");
  graph_.add_output(moved_);
  EXPECT_THAT(fused(), HasSubstr("p.new: f32[2,3] = ai.graft.Assign(p, moved)"));
}

TEST_F(FuseUpdates, NotWhereAVariableIsReadLater) {
  assign(p_, moved_, "p.new");
  graph_.add_output(add("Neg", {p_}, "late"));
  EXPECT_THAT(fused(), Not(HasSubstr("UpdateChain")));
}

TEST_F(FuseUpdates, NotWhereAnOperandChangesMeanwhile) {
  Value* const other = variable("other");
  Value* const sum = add("Add", {p_, other}, "sum");
  assign(other, g_, "other.new");
  graph_.add_output(add("Neg", {g_}, "between"));
  assign(p_, sum, "p.new");
  EXPECT_THAT(fused(), Not(HasSubstr("UpdateChain")));
}

}  // namespace
}  // namespace graft
