#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"

namespace graft {
namespace {

/// dx of a convolution of one channel, plus what else the input's readers send back.
class FuseAddends : public testing::Test {
 protected:
  Value* input(std::string_view name, const Shape& shape) {
    return graph_.add_input(name, {DType::f64, SymShape(shape)});
  }
  Value* input_grad(std::string_view dy, std::string_view w, const std::string& output) {
    const std::vector<std::int64_t> shape{1, 1, 4};
    return graph_
        .add_node("ConvInputGrad", kInternalDomain, {input(dy, {1, 1, 3}), input(w, {1, 1, 2})},
                  {output}, {{"shape", shape}})
        ->output();
  }
  Value* add(Value* a, Value* b, const std::string& output) {
    return graph_.add_node("Add", "", {a, b}, {output})->output();
  }
  bool fuses() {
    passes::infer_shapes(graph_);
    return passes::fuse_addends(graph_, cpu());
  }

  Graph graph_{"net"};
};

TEST_F(FuseAddends, TheSumIsMadeWhereTheOtherValueLies) {
  Value* const other = input("other", {1, 1, 4});
  graph_.add_output(add(other, input_grad("dy", "w", "dx"), "sum"));
  EXPECT_TRUE(fuses());
  EXPECT_EQ(print(graph_),
            R"(net(other: f64[1,1,4], dy: f64[1,1,3], w: f64[1,1,2]) -> (sum: f64[1,1,4])
  sum: f64[1,1,4] = ai.graft.ConvInputGrad(dy, w, other) {shape = [1, 1, 4]}
)");
  Plan plan(graph_.clone());
  const std::vector<Tensor> inputs{Tensor::from<double>({1, 1, 4}, {1000, 2000, 3000, 4000}),
                                   Tensor::from<double>({1, 1, 3}, {1, 2, 3}),
                                   Tensor::from<double>({1, 1, 2}, {10, 100})};
  plan.run(inputs);
  const auto sum = plan.output(0).values<double>();
  EXPECT_EQ(std::vector<double>(sum.begin(), sum.end()),
            (std::vector<double>{1010, 2120, 3230, 4300}));
}

TEST_F(FuseAddends, OfTwoGradientsTheLaterOneAddsToTheOther) {
  Value* const first = input_grad("dy1", "w1", "first");
  Value* const second = input_grad("dy2", "w2", "second");
  graph_.add_output(add(second, first, "sum"));
  EXPECT_TRUE(fuses());
  ASSERT_EQ(graph_.node_count(), 2U);
  EXPECT_EQ(graph_.nodes().back()->input(2), first);
}

TEST_F(FuseAddends, AGradientThatOthersReadIsMadeByItself) {
  Value* const dx = input_grad("dy", "w", "dx");
  graph_.add_output(add(dx, input("other", {1, 1, 4}), "sum"));
  graph_.add_output(dx);
  EXPECT_FALSE(fuses());
}

TEST_F(FuseAddends, AnAddendThatBroadcastsIsAddedByItself) {
  graph_.add_output(add(input_grad("dy", "w", "dx"), input("other", {1}), "sum"));
  EXPECT_FALSE(fuses());
}

/// Two gradients of a shape of 8 elements: of 8 numbers, and of 2, whose gradient so waits.
TEST_F(FuseAddends, AnAddendLargerThanWhatItIsMadeOfIsMadeRightBefore) {
  const std::vector<std::int64_t> shape{1, 1, 8};
  Value* const dy = input("dy", {1, 1, 8});
  const auto grad = [&](Value* from, Value* w, std::int64_t stride, const std::string& name) {
    return graph_
        .add_node("ConvInputGrad", kInternalDomain, {from, w}, {name},
                  {{"shape", shape}, {"strides", std::vector<std::int64_t>{stride}}})
        ->output();
  };
  Value* const small = graph_.add_node("Relu", "", {input("small_dy", {1, 1, 2})}, {"s"})->output();
  Value* const first = grad(small, input("w4", {1, 1, 4}), 4, "first");
  Value* const between = graph_.add_node("Relu", "", {dy}, {"between"})->output();
  graph_.add_output(add(first, grad(between, input("w1", {1, 1, 1}), 1, "second"), "sum"));
  EXPECT_TRUE(fuses());
  std::vector<std::string> order;
  for (const auto& node : graph_.nodes()) order.push_back(node->output()->name());
  EXPECT_EQ(order, (std::vector<std::string>{"s", "between", "first", "sum"}));
}

}  // namespace
}  // namespace graft
