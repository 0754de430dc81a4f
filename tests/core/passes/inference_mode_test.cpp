#include <gmock/gmock.h>

#include "core/ops/builder.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

/// Dropout in training form, of which the first outputs are read.
std::unique_ptr<Graph> training_dropout(int read) {
  auto graph = std::make_unique<Graph>("dropout");
  Builder builder(*graph);
  Value* const x = graph->add_input("x", {DType::f32, SymShape{4}});
  Value* const ratio = builder.constant(Tensor::scalar(0.5F));
  Value* const mode = builder.constant(Tensor::scalar(true));
  const Node* const node = builder.node("Dropout", "", {x, ratio, mode}, 2);
  for (int i = 0; i < read; ++i) graph->add_output(node->output(i));
  return graph;
}

TEST(InferenceMode, RemovesDropout) {
  const std::unique_ptr<Graph> graph = training_dropout(1);
  EXPECT_TRUE(inference_mode(*graph));
  EXPECT_TRUE(graph->nodes().empty());
  EXPECT_EQ(graph->outputs()[0]->name(), "x");
  EXPECT_FALSE(inference_mode(*graph));
}

TEST(InferenceMode, KeepsADropoutWhoseMaskIsRead) {
  const std::unique_ptr<Graph> graph = training_dropout(2);
  EXPECT_FALSE(inference_mode(*graph));
  EXPECT_EQ(graph->nodes().size(), 1U);
}

}  // namespace
}  // namespace graft::passes
