#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "core/passes/pass.h"
#include "tests/core/error_of.h"

namespace graft::passes {
namespace {

class TrainMode : public testing::Test {
 protected:
  TrainMode() : builder_(graph_) {
    x_ = builder_.expr(graph_.add_input("x", {DType::f32, SymShape{4, 2}}));
    for (const char* name : {"scale", "bias", "mean", "var"}) {
      parameters_.push_back(
          builder_.expr(graph_.add_initializer(name, Tensor::full(DType::f32, {2}, 1.0))));
    }
  }

  Expr batch_norm() {
    return call("BatchNormalization",
                {x_, parameters_[0], parameters_[1], parameters_[2], parameters_[3]},
                {{"epsilon", AttributeValue(0.5F)}, {"momentum", AttributeValue(0.75F)}});
  }

  Graph graph_;
  Builder builder_;
  Expr x_;
  std::vector<Expr> parameters_;
};

TEST_F(TrainMode, ABatchNormalizationThatTrainsUpdatesItsStatistics) {
  parameters_[0].value()->is_variable = true;
  graph_.add_output(batch_norm().value());
  EXPECT_TRUE(train_mode(graph_, 1));
  const Node* const node = graph_.outputs()[0]->producer();
  EXPECT_TRUE(node->is("BatchNormTraining", kInternalDomain));
  EXPECT_EQ(node->attributes.get_float("epsilon", 0), 0.5F);
  EXPECT_EQ(node->attributes.get_float("momentum", 0), 0.75F);
  EXPECT_TRUE(parameters_[2].value()->is_variable);
  EXPECT_TRUE(parameters_[3].value()->is_variable);
}

TEST_F(TrainMode, RunningStatisticsAreUpdatedOnceAStep) {
  parameters_[0].value()->is_variable = true;
  const Expr first = batch_norm();
  x_ = first;
  graph_.add_output(batch_norm().value());
  const Error error = error_of([&] { train_mode(graph_, 1); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), testing::HasSubstr("has the same running statistics ('mean')"));
}

TEST_F(TrainMode, AFrozenOneStays) {
  graph_.add_output(batch_norm().value());
  EXPECT_FALSE(train_mode(graph_, 1));
  EXPECT_TRUE(graph_.outputs()[0]->producer()->is("BatchNormalization"));
  EXPECT_FALSE(parameters_[2].value()->is_variable);
}

TEST_F(TrainMode, EachDropoutDrawsItsOwnNumbers) {
  const Expr ratio = builder_.expr(graph_.add_initializer("ratio", Tensor::scalar(0.25F)));
  const Expr first = call("Dropout", {x_, ratio});
  graph_.add_output(call("Dropout", {first}).value());
  EXPECT_TRUE(train_mode(graph_, 7));
  const Node* const second = graph_.outputs()[0]->producer();
  const Node* const before = second->input(0)->producer();
  EXPECT_TRUE(second->is("DropoutTraining", kInternalDomain));
  EXPECT_EQ(second->attributes.get_float("ratio", 0), 0.5F) << "ONNX's default";
  EXPECT_EQ(before->attributes.get_float("ratio", 0), 0.25F);
  EXPECT_EQ(before->attributes.get_int("seed", 0), 7);
  EXPECT_NE(before->attributes.get_int("op_id", 0), second->attributes.get_int("op_id", 0));
}

TEST_F(TrainMode, ADropoutWhoseRatioIsComputedIsRefused) {
  const Expr ratio = builder_.expr(graph_.add_input("ratio", {DType::f32, SymShape(Shape{})}));
  graph_.add_output(call("Dropout", {x_, ratio}).value());
  EXPECT_THAT(error_of([&] { train_mode(graph_, 1); }).what(),
              testing::HasSubstr("the ratio must be known before the run"));
}

}  // namespace
}  // namespace graft::passes
