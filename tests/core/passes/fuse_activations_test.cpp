#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

constexpr std::string_view kTrain = "BatchNormTraining";
constexpr std::string_view kGrad = "BatchNormGrad";

/// A normalization, `activation`, and the gradients of both from dz.
struct Chain {
  explicit Chain(std::string_view activation, bool saves_output, const std::vector<float>& bounds) {
    x = graph.add_input("x", {DType::f32, SymShape(Shape({2, 3}))});
    Value* const dz = graph.add_input("dz", {DType::f32, SymShape(Shape({2, 3}))});
    std::vector<Value*> statistics{x};
    for (const char* name : {"scale", "bias", "mean", "var"}) {
      statistics.push_back(graph.add_initializer(name, Tensor::zeros(DType::f32, {3})));
      statistics.back()->is_variable = true;
    }
    norm = graph.add_node(kTrain, kInternalDomain, statistics,
                          {"y", "saved_mean", "saved_inv_std", "new_mean", "new_var"});
    std::vector<Value*> inputs{norm->output(0)};
    std::vector<Value*> grad_inputs{nullptr, dz};
    for (const float bound : bounds) {
      Value* const value = graph.add_initializer("", Tensor::scalar(bound));
      inputs.push_back(value);
      grad_inputs.push_back(value);
    }
    Value* const z = graph.add_node(activation, "", inputs, {"z"})->output();
    grad_inputs[0] = saves_output ? z : norm->output(0);
    Value* const dy =
        graph.add_node(std::string(activation) + "Grad", kInternalDomain, grad_inputs, {"dy"})
            ->output();
    grad = graph.add_node(kGrad, kInternalDomain,
                          {x, dy, statistics[1], norm->output(1), norm->output(2)},
                          {"dx", "dscale", "dbias"});
    graph.set_outputs({z, grad->output(0)});
    passes::infer_shapes(graph);
  }

  Graph graph{"step"};
  Value* x = nullptr;
  Node* norm = nullptr;
  Node* grad = nullptr;
};

TEST(FuseActivations, ReluBecomesPartOfTheNormalizationAndOfItsGradient) {
  Chain chain("Relu", true, {});
  EXPECT_TRUE(passes::fuse_activations(chain.graph));
  EXPECT_EQ(chain.graph.node_count(), 2U);
  EXPECT_EQ(chain.graph.outputs()[0], chain.norm->output(0));
  EXPECT_EQ(chain.grad->input(1)->name(), "dz");
  EXPECT_EQ(chain.grad->input(5)->name(), "bias");
  for (const Node* node : {chain.norm, chain.grad}) {
    EXPECT_EQ(node->attributes.get_float("lower", 1.0F), 0.0F);
    EXPECT_EQ(node->attributes.get_int("strict", 0), 1);
  }
  EXPECT_FALSE(passes::fuse_activations(chain.graph));
}

TEST(FuseActivations, ClipKeepsItsBounds) {
  Chain chain("Clip", false, {0.0F, 6.0F});
  EXPECT_TRUE(passes::fuse_activations(chain.graph));
  EXPECT_EQ(chain.graph.node_count(), 2U);
  for (const Node* node : {chain.norm, chain.grad}) {
    EXPECT_EQ(node->attributes.get_float("upper", 1.0F), 6.0F);
    EXPECT_FALSE(node->attributes.has("strict"));
  }
}

TEST(FuseActivations, AReaderOfTheBareNormalizationKeepsItApart) {
  Chain chain("Relu", true, {});
  chain.graph.add_output(chain.norm->output(0));
  EXPECT_FALSE(passes::fuse_activations(chain.graph));
  EXPECT_EQ(chain.graph.node_count(), 4U);
}

}  // namespace
}  // namespace graft
