#include <gtest/gtest.h>

#include <algorithm>

#include "core/passes/pass.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

/// A convolution of three channels to two and its norm.
struct Normed : test::SmallNet {
  Normed() {
    weight = constant({2, 3, 1, 1}, 0.25);
    const Expr y = call("Conv", {input("x", {1, 3, 4, 4}), weight});
    convolution = y.value();
    norm = call("BatchNormalization",
                {y, constant({2}, 2), constant({2}, 3), constant({2}, 0.5), constant({2}, 4)});
    graph.add_output(norm.value());
  }
  Expr constant(const Shape& shape, double value) {
    return builder.expr(builder.constant(Tensor::full(DType::f32, shape, value)));
  }
  int count(std::string_view op) const {
    return static_cast<int>(std::ranges::count_if(
        graph.nodes(), [&](const auto& node) { return node->op_type() == op; }));
  }

  Expr weight;
  Value* convolution = nullptr;
  Expr norm;
};

TEST(FoldBatchNorm, TheConvolutionTakesItsPlace) {
  Normed net;
  EXPECT_TRUE(passes::fold_batch_norm(net.graph));
  EXPECT_EQ(net.count("BatchNormalization"), 0);
  EXPECT_TRUE(passes::settle(net.graph));
  ASSERT_EQ(net.graph.nodes().size(), 1U) << "what the weight is multiplied by folds";
  const Node& folded = *net.graph.nodes().front();
  EXPECT_TRUE(folded.is("Conv"));
  // Scale 2 over the root of 4 and a little; what was 0.25 a tap, and (0 - 0.5) * 1 + 3.
  EXPECT_NEAR(folded.input(1)->initializer().values<const float>()[0], 0.25F, 1e-5F);
  EXPECT_NEAR(folded.input(2)->initializer().values<const float>()[0], 2.5F, 1e-5F);
}

TEST(FoldBatchNorm, AWeightThatMayChangeIsLeftAlone) {
  Normed net;
  net.weight.value()->is_variable = true;
  EXPECT_FALSE(passes::fold_batch_norm(net.graph));
}

TEST(FoldBatchNorm, AConvolutionThatSomebodyElseReadsIsLeftAlone) {
  Normed net;
  net.graph.add_output(net.convolution);
  EXPECT_FALSE(passes::fold_batch_norm(net.graph));
}

TEST(FoldBatchNorm, StatisticsOfTheBatchAreLeftAlone) {
  Normed net;
  net.norm.value()->producer()->attributes.set({"training_mode", 1});
  EXPECT_FALSE(passes::fold_batch_norm(net.graph));
}

}  // namespace
}  // namespace graft
