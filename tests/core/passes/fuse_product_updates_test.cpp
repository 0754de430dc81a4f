#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

/// An update of w [rows,columns] whose gradient is x^T dy.
struct Step {
  explicit Step(const char* op = "SgdUpdate", Attributes settings = {}, std::int64_t rows = 3,
                std::int64_t columns = 2) {
    const auto input = [&](const char* name, DType dtype, const Shape& shape) {
      return graph.add_input(name, {dtype, SymShape(shape)});
    };
    x = input("x", DType::f32, {4, rows});
    Value* const dy = input("dy", DType::f32, {4, columns});
    Value* const lr = input("lr", DType::f32, {});
    Value* const step = input("step", DType::i64, {});
    w = variable("w", {rows, columns});
    product = graph.add_node("Gemm", "", {x, dy}, {"dw"}, {{"transA", 1}});
    update = graph.add_node(op, kInternalDomain, {w, product->output(), lr, step}, {"w.new"},
                            std::move(settings));
  }
  /// Adds a state and its new content.
  void add_state(const char* name) {
    update->set_input(update->input_count(), variable(name, w->known_shape()));
    graph.add_node_output(update, std::string(name) + ".new");
  }
  bool fuse() {
    passes::infer_shapes(graph);
    return passes::fuse_product_updates(graph, cpu());
  }

  Graph graph{"step"};
  Value* x = nullptr;
  Value* w = nullptr;
  Node* product = nullptr;
  Node* update = nullptr;

 private:
  Value* variable(const char* name, const Shape& shape) {
    Value* const added = graph.add_initializer(name, Tensor::zeros(DType::f32, shape));
    added->is_variable = true;
    return added;
  }
};

TEST(FuseProductUpdates, TheProductAddsToTheParameter) {
  Step step;
  step.product->attributes.set({"alpha", AttributeValue(0.5F)});
  EXPECT_TRUE(step.fuse());
  EXPECT_EQ(print(step.graph), R"(step(x: f32[4,3], dy: f32[4,2], lr: f32[], step: i64[]) -> ()
  w: f32[3,2] = variable
  w.new_1: f32[3,2] = ai.graft.SgdProductUpdate(w, x, lr, step, _, dy) {transA = 1, scale = 0.5}
)");
  EXPECT_FALSE(step.fuse());
}

TEST(FuseProductUpdates, AnUpdateTakesALargeGradientPieceByPiece) {
  Step step("AdamUpdate", {{"beta1", AttributeValue(0.5F)}}, 512, 600);
  step.add_state("m");
  step.add_state("v");
  EXPECT_TRUE(step.fuse());
  EXPECT_EQ(print(step.graph), R"(step(x: f32[4,512], dy: f32[4,600], lr: f32[], step: i64[]) -> ()
  w: f32[512,600] = variable
  m: f32[512,600] = variable
  v: f32[512,600] = variable
  w.new_1: f32[512,600], m.new_1: f32[512,600], v.new_1: f32[512,600] = ai.graft.AdamProductUpdate(w, x, lr, step, m, v, dy) {beta1 = 0.5, transA = 1}
)");
}

TEST(FuseProductUpdates, ASmallGradientIsStored) {
  Step step("AdamUpdate");
  step.add_state("m");
  step.add_state("v");
  EXPECT_FALSE(step.fuse());
}

TEST(FuseProductUpdates, AGradientThatIsAlsoReadElsewhereIsStored) {
  Step step;
  step.graph.add_output(step.product->output());
  EXPECT_FALSE(step.fuse());
}

TEST(FuseProductUpdates, SmallGradientsStayWhereMoreIsDoneThanAdding) {
  EXPECT_FALSE(Step("SgdUpdate", {{"weight_decay", AttributeValue(0.1F)}}).fuse());
  Step step;
  step.add_state("m");
  EXPECT_FALSE(step.fuse());
}

TEST(FuseProductUpdates, AProductOfAParameterRunsBeforeThatIsUpdated) {
  Step step;
  Value* const other = step.graph.add_initializer("other", Tensor::zeros(DType::f32, {4, 3}));
  other->is_variable = true;
  step.product->set_input(0, other);
  EXPECT_FALSE(step.fuse());
}

}  // namespace
}  // namespace graft
