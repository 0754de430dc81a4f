#include "core/ops/operand_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "tests/core/graph/small_graphs.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

OperandTable::ValueIndex index(const Value* value) {
  return static_cast<OperandTable::ValueIndex>(value->number());
}

TEST(OperandTable, SaysWhatNodesReadAndWrite) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2, 3}});
  Value* const most = graph.add_initializer("most", Tensor::scalar(6.0F));
  Node* const clip = builder.node("Clip", "", {x, nullptr, most}, 1);
  const Expr flat = reshape(builder.expr(clip->output(0)), Shape{6});
  graph.add_output(flat.value());

  const OperandTable table(graph);
  ASSERT_EQ(table.items().size(), 2U);
  EXPECT_EQ(&table.graph(), &graph);
  EXPECT_THAT(table.given_order(), ElementsAre(0, 1));
  const OperandTable::Item& first = table.items()[0];
  EXPECT_EQ(first.node, clip);
  EXPECT_THAT(table.inputs(first), ElementsAre(index(x), OperandTable::kNone, index(most)));
  EXPECT_THAT(table.outputs(first), ElementsAre(index(clip->output(0))));
  EXPECT_THAT(table.read_by_bodies(first), IsEmpty());
  EXPECT_EQ(table.input(first, 2), index(most));
  EXPECT_EQ(table.input(first, 3), OperandTable::kNone) << "past the end";
  EXPECT_FALSE(first.is_view);
  EXPECT_FALSE(first.updates_state);
  EXPECT_TRUE(table.items()[1].is_view);

  const OperandTable::Output& clipped = table.output(index(clip->output(0)));
  EXPECT_EQ(clipped.bytes, 24U);
  EXPECT_EQ(clipped.elements, 6);
  EXPECT_FALSE(clipped.is_graph_output);
  EXPECT_TRUE(table.output(index(flat.value())).is_graph_output);
}

TEST(OperandTable, SaysWhatBodiesReadOfTheGraph) {
  const auto graph = branching();
  const OperandTable table(*graph);
  const OperandTable::Item& branch = table.items()[0];
  EXPECT_THAT(table.inputs(branch), ElementsAre(index(graph->find("c"))));
  const OperandTable::ValueIndex x = index(graph->find("x"));
  EXPECT_THAT(table.read_by_bodies(branch), ElementsAre(x, x)) << "once in each";
}

TEST(OperandTable, KnowsUpdates) {
  Graph graph;
  Builder builder(graph);
  Value* const w = graph.add_initializer("w", Tensor::zeros(DType::f32, {3}));
  w->is_variable = true;
  Value* const dw = graph.add_input("dw", {DType::f32, SymShape{3}});
  Value* const rate = graph.add_input("rate", {DType::f32, SymShape(Shape{})});
  Value* const count = graph.add_input("count", {DType::i64, SymShape(Shape{})});
  builder.node("SgdUpdate", kInternalDomain, {w, dw, rate, count}, 1);
  EXPECT_TRUE(OperandTable(graph).items()[0].updates_state);
}

}  // namespace
}  // namespace graft
