#include "train/layer_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

using ::testing::ElementsAre;

/// A chain of products with [2,2] weights, each behind it plus a bias [2] if it has a name.
Model chain(const std::vector<std::pair<std::string, std::string>>& layers) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}}));
  // The file's order of initializers is not that of the layers.
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    graph.add_initializer(layer->first, test::random_tensor({2, 2}, 1));
    if (!layer->second.empty())
      graph.add_initializer(layer->second, Tensor::zeros(DType::f32, {2}));
  }
  for (const auto& [weight, bias] : layers) {
    x = matmul(x, transpose(builder.expr(graph.find(weight)), {1, 0}));
    if (!bias.empty()) x = x + builder.expr(graph.find(bias));
  }
  graph.add_output(x.value());
  return model;
}

TEST(LayerOrder, GoesByNamesInTheOrderOfReading) {
  const Model model = chain({{"stem.weight", "stem.bias"},
                             {"blocks.0.a.weight", ""},
                             {"blocks.0.b.weight", ""},
                             {"blocks.1.a.weight", "blocks.1.a.bias"},
                             {"head.weight", "head.bias"}});
  EXPECT_THAT(layer_order(model.graph(), {"head.bias", "blocks.1.a.weight", "blocks.0.b.weight",
                                          "blocks.0.a.weight", "stem.bias", "stem.weight"}),
              ElementsAre(3, 2, 1, 1, 0, 0));
}

/// 2^60 ways lead from a weight to its product.
TEST(LayerOrder, EndsHoweverWeightsAreRearranged) {
  Model model = chain({{"a.weight", ""}, {"b.weight", ""}});
  Graph& graph = model.graph();
  Value* const weight = graph.find("b.weight");
  Node* const reader = weight->uses()[0].node;
  Builder builder(graph, reader);
  Expr x = builder.expr(weight);
  for (int i = 0; i < 60; ++i) {
    const Expr twice = call("Concat", {x, x}, {{"axis", 0}});
    x = call("Slice", {twice, constant_ints(builder, {0}), constant_ints(builder, {2})});
  }
  reader->set_input(0, x.value());
  EXPECT_THAT(layer_order(graph, {"a.weight", "b.weight"}), ElementsAre(0, 1));
}

/// As PyTorch's exporter names what it transposed.
TEST(LayerOrder, NamelessParametersGoWithWhatFollows) {
  const Model model = chain({{"MatMul_1", "layer.0.bias"}, {"MatMul_2", "layer.1.bias"}});
  EXPECT_THAT(layer_order(model.graph(), {"MatMul_2", "layer.1.bias", "MatMul_1", "layer.0.bias"}),
              ElementsAre(1, 1, 0, 0));
  const Model plain = chain({{"a", ""}, {"b", ""}});
  EXPECT_THAT(layer_order(plain.graph(), {"b", "a"}), ElementsAre(1, 0));
}

TEST(LayerOrder, RatesFallTowardsTheFirstLayer) {
  Model model = chain({{"stem.w", ""}, {"blocks.0.w", ""}, {"head.w", ""}});
  const TrainOptions options{.loss = mse(),
                             .optimizer = SGD{.lr = 0.5F},
                             .groups = {{.pattern = "stem.w", .lr = 0.3F}},
                             .layer_decay = 0.5F};
  const TrainStep step(model, options);
  EXPECT_EQ(step.learning_rate("head.w"), 0.5F);
  EXPECT_EQ(step.learning_rate("blocks.0.w"), 0.25F);
  EXPECT_EQ(step.learning_rate("stem.w"), 0.3F) << "as the group says";
}

}  // namespace
}  // namespace graft
