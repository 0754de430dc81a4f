#include "core/runtime/plan_kernels.h"

#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "core/passes/pass.h"
#include "core/runtime/alike.h"

namespace graft {
namespace {

class SharedKernels : public testing::Test {
 protected:
  Expr input(const Shape& shape = {2, 3}, DType dtype = DType::f32) {
    return builder_.expr(graph_.add_input(graph_.unique_name("x"), {dtype, SymShape(shape)}));
  }
  Expr variable(const Shape& shape) {
    Value* const value = builder_.constant(Tensor::zeros(DType::f32, shape), "w");
    value->is_variable = true;
    return builder_.expr(value);
  }
  bool share(const Expr& a, const Expr& b) {
    const Node& one = *a.value()->producer();
    const Node& other = *b.value()->producer();
    const bool shared = kernels_.make(one) == kernels_.make(other);
    EXPECT_TRUE(!shared || (are_alike(one, other) && alike_hash(one) == alike_hash(other)));
    return shared;
  }

  Graph graph_{"net"};
  Builder builder_{graph_};
  PlanKernels kernels_{cpu(), Fallback::none};
};

TEST_F(SharedKernels, NodesOfOneKindHaveOne) {
  EXPECT_TRUE(share(call("Relu", {input()}), call("Relu", {input()})));
  EXPECT_TRUE(share(call("MatMul", {input(), variable({3, 4})}),
                    call("MatMul", {input(), variable({3, 4})})));
}

TEST_F(SharedKernels, NotThoseOfOtherOpsTypesShapesOrLayouts) {
  const Expr relu = call("Relu", {input()});
  EXPECT_FALSE(share(relu, call("Neg", {input()})));
  EXPECT_FALSE(share(relu, call("Relu", {input({2, 3}, DType::f64)})));
  EXPECT_FALSE(share(relu, call("Relu", {input({3, 2})})));
  const Expr image = call("Relu", {input({1, 2, 3, 4})});
  const Expr other = call("Relu", {input({1, 2, 3, 4})});
  image.value()->layout = Layout::channels_last;
  image.value()->producer()->input(0)->layout = Layout::channels_last;
  EXPECT_FALSE(share(image, other));
}

TEST_F(SharedKernels, NotThoseOfOtherAttributes) {
  const auto leaky = [&](float alpha) {
    return call("LeakyRelu", {input()}, {{"alpha", AttributeValue(alpha)}});
  };
  EXPECT_TRUE(share(leaky(0.5F), leaky(0.5F)));
  EXPECT_FALSE(share(leaky(0.5F), leaky(0.25F)));
  EXPECT_FALSE(share(leaky(0.0F), leaky(-0.0F)));
  EXPECT_FALSE(share(leaky(0.0F), call("LeakyRelu", {input()})));
}

/// Their kernels may be made for what the elements are.
TEST_F(SharedKernels, NotThoseThatReadAConstant) {
  const auto product = [&] {
    const Expr w = builder_.expr(builder_.constant(Tensor::zeros(DType::f32, {3, 4}), "w"));
    return call("MatMul", {input(), w});
  };
  const Expr one = product();
  EXPECT_FALSE(share(one, product()));
  EXPECT_FALSE(are_alike(*one.value()->producer(), *one.value()->producer()));
}

TEST_F(SharedKernels, ThoseThatReadTheSameFewNumbers) {
  const auto sum = [&](std::int64_t axis) { return reduce_sum(input(), {axis}, false); };
  const auto sum_of_input = [&] { return call("ReduceSum", {input(), input({1}, DType::i64)}); };
  EXPECT_TRUE(share(sum(0), sum(0)));
  EXPECT_FALSE(are_alike(*sum(0).value()->producer(), *sum(1).value()->producer()));
  EXPECT_FALSE(are_alike(*sum(0).value()->producer(), *sum_of_input().value()->producer()));
}

/// Each draws numbers of its own.
TEST_F(SharedKernels, NotThoseThatLookAtMoreOfANode) {
  const auto draw = [&] { return call("RandomNormalLike", {input()}); };
  EXPECT_FALSE(share(draw(), draw()));
  const auto drop = [&] { return call("Dropout", {input(), Expr(), input({}, DType::boolean)}); };
  EXPECT_FALSE(share(drop(), drop()));
}

TEST_F(SharedKernels, NotThoseThatLeaveOutWhatOthersHave) {
  const auto clip = [&](bool has_least) {
    return call("Clip", {input(), has_least ? input({}) : Expr(), input({})});
  };
  EXPECT_TRUE(share(clip(false), clip(false)));
  EXPECT_FALSE(share(clip(false), clip(true)));
}

TEST_F(SharedKernels, ChainsOfOneFormHaveOne) {
  const auto chain = [&](const char* last, double factor) {
    const Expr result = call(last, {call("Relu", {input() * factor})});
    graph_.add_output(result.value());
  };
  chain("Neg", 2.0);
  chain("Neg", 2.0);
  chain("Neg", 3.0);
  chain("Abs", 2.0);
  ASSERT_TRUE(passes::fuse_chains(graph_, cpu()));
  ASSERT_EQ(graph_.node_count(), 4U);
  std::vector<Expr> results;
  for (Value* output : graph_.outputs()) results.push_back(builder_.expr(output));
  EXPECT_TRUE(share(results[0], results[1]));
  EXPECT_FALSE(share(results[0], results[2])) << "another constant";
  EXPECT_FALSE(share(results[0], results[3])) << "another op";
}

}  // namespace
}  // namespace graft
