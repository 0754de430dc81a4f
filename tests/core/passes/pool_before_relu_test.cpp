#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

/// x, `before`, Relu, MaxPool with these attributes.
struct Chain {
  explicit Chain(std::string_view before, const Attributes& attributes = {}) {
    Value* const x = graph.add_input("x", {DType::f32, SymShape(Shape({2, 3, 4, 4}))});
    std::vector<Value*> inputs{x};
    if (before == "Conv") {
      inputs.push_back(graph.add_initializer("w", Tensor::zeros(DType::f32, {5, 3, 1, 1})));
    }
    Attributes window = attributes;
    window.set({"kernel_shape", std::vector<std::int64_t>{2, 2}});
    window.set({"strides", std::vector<std::int64_t>{2, 2}});
    Builder builder(graph);
    Value* const made = builder.node(before, "", inputs, 1)->output(0);
    relu = builder.node("Relu", "", {made}, 1);
    Node* const pool = builder.node("MaxPool", "", {relu->output(0)}, 1, window);
    graph.set_outputs({pool->output(0)});
  }
  bool swaps() { return passes::pool_before_relu(graph); }
  std::vector<std::string> ops() const {
    std::vector<std::string> result;
    for (const auto& node : graph.nodes()) result.push_back(node->op_type());
    return result;
  }

  Graph graph{"step"};
  Node* relu = nullptr;
};

using Ops = std::vector<std::string>;

TEST(PoolBeforeRelu, SwapsTheTwoBehindAConvolution) {
  Chain chain("Conv");
  EXPECT_TRUE(chain.swaps());
  EXPECT_EQ(chain.ops(), (Ops{"Conv", "MaxPool", "Relu"}));
  const Value* const output = chain.graph.outputs().front();
  EXPECT_EQ(output->producer()->op_type(), "Relu");
  EXPECT_EQ(output->known_shape(), Shape({2, 5, 2, 2}));
  EXPECT_FALSE(chain.swaps());
}

TEST(PoolBeforeRelu, LeavesWhatIsNotBehindAConvolution) {
  Chain chain("Neg");
  EXPECT_FALSE(chain.swaps());
  EXPECT_EQ(chain.ops(), (Ops{"Neg", "Relu", "MaxPool"}));
}

TEST(PoolBeforeRelu, LeavesARectifiedImageThatOthersRead) {
  Chain chain("Conv");
  chain.graph.set_outputs({chain.graph.outputs().front(), chain.relu->output(0)});
  EXPECT_FALSE(chain.swaps());
}

TEST(PoolBeforeRelu, LeavesWindowsThatMayLieInThePadding) {
  EXPECT_FALSE(Chain("Conv", {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}).swaps());
  EXPECT_FALSE(Chain("Conv", {{"auto_pad", "SAME_UPPER"}}).swaps());
  EXPECT_FALSE(Chain("Conv", {{"ceil_mode", 1}}).swaps());
  EXPECT_TRUE(Chain("Conv", {{"pads", std::vector<std::int64_t>{0, 0, 0, 0}}}).swaps());
}

}  // namespace
}  // namespace graft
