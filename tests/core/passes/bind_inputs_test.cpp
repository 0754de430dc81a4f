#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/passes/pass.h"
#include "tests/core/error_of.h"

namespace graft::passes {
namespace {

using testing::HasSubstr;

class BindInputs : public testing::Test {
 protected:
  BindInputs() {
    x_ = graph_.add_input("x", {DType::f32, SymShape{Dim("N"), 3}});
    graph_.add_input("bias", {DType::f32, SymShape{3}});
    graph_.add_initializer("bias", Tensor::zeros(DType::f32, {3}));
    Node* const node = graph_.add_node("Add", "", {x_, graph_.find("bias")}, {"y"});
    node->output()->set_type({DType::f32, SymShape{7, 3}});  // stale, as in real files
    graph_.add_output(node->output());
  }

  std::string error(const ValueType& type) {
    return error_of([&] { bind_inputs(graph_, {type}); }).what();
  }

  Graph graph_;
  Value* x_;
};

TEST_F(BindInputs, GivesShapesAndForgetsStaleOnes) {
  bind_inputs(graph_, {{DType::f32, SymShape{5, 3}}});
  EXPECT_EQ(x_->known_shape(), (Shape{5, 3}));
  EXPECT_FALSE(graph_.find("y")->shape().has_value());
  infer_shapes(graph_);
  EXPECT_EQ(graph_.find("y")->known_shape(), (Shape{5, 3}));
}

TEST_F(BindInputs, AnInputWithADefaultIsNotAskedFor) {
  EXPECT_EQ(required_inputs(graph_), std::vector<Value*>{x_});
}

TEST_F(BindInputs, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(error({DType::f32, SymShape{5, 4}}),
              HasSubstr("input 'x' is f32[N,3], got f32[5,4]"));
  EXPECT_THAT(error({DType::f32, SymShape{5}}), HasSubstr("got f32[5]"));
  EXPECT_THAT(error({DType::i64, SymShape{5, 3}}), HasSubstr("got i64[5,3]"));
  EXPECT_THAT(error_of([&] { bind_inputs(graph_, {}); }).what(),
              HasSubstr("the model has 1 inputs, got 0"));
}

}  // namespace
}  // namespace graft::passes
