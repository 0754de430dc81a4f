#include "core/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "tests/core/error_of.h"
#include "tests/core/graph/small_graphs.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Graph, ConnectsValuesBothWays) {
  Graph graph("main");
  Value* const x = graph.add_input("x", f32({2}));
  Node* const node = graph.add_node("Add", "", {x, x}, {"y"});
  graph.add_output(node->output());
  EXPECT_THAT(x->uses(), ElementsAre(Use{node, 0}, Use{node, 1}));
  EXPECT_EQ(node->output()->producer(), node);
  EXPECT_EQ(&node->output()->graph(), &graph);
  EXPECT_EQ(graph.find("y"), node->output());
  EXPECT_EQ(graph.find("nothing"), nullptr);
  EXPECT_TRUE(x->is_graph_input());
  EXPECT_TRUE(node->output()->is_graph_output());
  EXPECT_FALSE(node->output()->is_unused());
  verify(graph);
}

TEST(Graph, LeftOutInputsAndOutputsAreNull) {
  Graph graph;
  Value* const x = graph.add_input("x", f32({2}));
  Node* const node = graph.add_node("Dropout", "", {x, nullptr, x}, {"", "mask"});
  EXPECT_EQ(node->input(1), nullptr);
  EXPECT_EQ(node->input(9), nullptr);
  EXPECT_EQ(node->output(0), nullptr);
  EXPECT_EQ(node->output(1)->output_index(), 1);
  node->set_input(2, nullptr);
  node->trim_inputs();
  EXPECT_EQ(node->input_count(), 1);
  node->set_input(3, x);
  EXPECT_EQ(node->input_count(), 4);
  EXPECT_EQ(x->uses().size(), 2U);
  verify(graph);
}

TEST(Graph, FoldsTheStandardDomain) {
  Graph graph;
  EXPECT_TRUE(graph.add_node("Relu", "ai.onnx", {}, {"y"})->is("Relu"));
  EXPECT_TRUE(graph.add_node("Twice", "ai.graft", {}, {"z"})->is("Twice", kInternalDomain));
}

TEST(Graph, RefusesATakenNameAndStaysWhole) {
  Graph graph("main");
  Value* const x = graph.add_input("x", f32({2}));
  EXPECT_EQ(kind_of([&] { graph.add_input("x", {}); }), ErrorKind::model);
  EXPECT_EQ(kind_of([&] { graph.add_node("Split", "", {x}, {"a", "b", "x"}); }), ErrorKind::model);
  EXPECT_EQ(kind_of([&] { graph.add_node("Split", "", {x}, {"a", "a"}); }), ErrorKind::model);
  EXPECT_EQ(graph.node_count(), 0U);
  EXPECT_TRUE(x->uses().empty());
  EXPECT_EQ(graph.find("a"), nullptr);
  graph.add_node("Split", "", {x}, {"a", "b"});
  verify(graph);
}

TEST(Graph, RemoveRefusesWhileAnOutputIsUsed) {
  const auto graph = chain();
  Node* const first = graph->nodes().front().get();
  first->set_name("first");
  const Error error = error_of([&] { graph->remove(first); });
  EXPECT_EQ(error.kind(), ErrorKind::argument);
  EXPECT_STREQ(error.what(),
               "cannot remove 'h': still read by Relu node producing 'y'; replace its uses first");
  Node* const last = graph->nodes().back().get();
  EXPECT_THAT(error_of([&] { graph->remove(last); }).what(), HasSubstr("graph output"));
  graph->set_outputs({});
  graph->remove(last);
  graph->remove(first);
  EXPECT_EQ(graph->find("h"), nullptr);
  EXPECT_TRUE(graph->find("x")->uses().empty());
  verify(*graph);
}

TEST(Graph, RemovesOnlyUnusedInputsAndInitializers) {
  const auto graph = chain();
  Value* const w = graph->find("w");
  EXPECT_EQ(kind_of([&] { graph->remove_input(graph->find("x")); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { graph->remove_initializer(w); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { graph->remove_input(w); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { graph->remove_input(graph->find("y")); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { graph->remove_initializer(graph->find("x")); }), ErrorKind::argument);
  graph->nodes().front()->set_input(1, graph->find("x"));
  graph->remove_initializer(w);
  EXPECT_EQ(graph->find("w"), nullptr);
  EXPECT_TRUE(graph->initializers().empty());
  verify(*graph);
}

TEST(Graph, RefusesValuesThatAreNotThere) {
  const auto graph = chain();
  const auto other = chain();
  Value* const none = graph->find("typo");
  Value* const x = graph->find("x");
  EXPECT_EQ(kind_of([&] { graph->remove_input(none); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { graph->remove_initializer(none); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { graph->replace_all_uses(none, x); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { graph->replace_all_uses(x, none); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { graph->rename(none, "z"); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { graph->rename(other->find("x"), "z"); }), ErrorKind::argument);
  verify(*graph);
}

TEST(Graph, AnInputMayHaveADefault) {
  Graph graph;
  Value* const w = graph.add_input("w", {DType::f32, SymShape{Dim("K")}});
  EXPECT_EQ(graph.add_initializer("w", Tensor::zeros(DType::f32, {3})), w);
  EXPECT_TRUE(w->is_initializer());
  EXPECT_EQ(text(w->type()), "f32[K]");
  verify(graph);
  EXPECT_EQ(kind_of([&] { graph.add_initializer("w", Tensor::scalar(1.0F)); }), ErrorKind::model);
  graph.remove_initializer(w);  // takes the default only
  EXPECT_FALSE(w->is_initializer());
  EXPECT_THAT(graph.inputs(), ElementsAre(w));
  verify(graph);
}

TEST(Graph, SetInitializerKeepsTypeAndShape) {
  const auto graph = chain();
  Value* const w = graph->find("w");
  w->set_initializer(Tensor::full(DType::f32, {2}, 7));
  EXPECT_EQ(to_double(w->initializer()), (std::vector<double>{7, 7}));
  EXPECT_EQ(kind_of([&] { w->set_initializer(Tensor::zeros(DType::f32, {3})); }),
            ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { graph->find("x")->set_initializer(Tensor::zeros(DType::f32, {2})); }),
            ErrorKind::argument);
}

TEST(Graph, UniqueNamesAvoidOuterGraphs) {
  Graph outer;
  outer.add_input("x", {});
  Graph inner("inner", &outer);
  EXPECT_EQ(inner.unique_name("x"), "x_1");
  inner.add_input("x_1", {});
  EXPECT_EQ(inner.unique_name("x"), "x_2");
  EXPECT_EQ(inner.unique_name("free"), "free");
  EXPECT_EQ(inner.add_input("", {})->name(), "value");
  EXPECT_EQ(inner.add_input("", {})->name(), "value_1");
  EXPECT_EQ(inner.find_in_scope("x"), outer.find("x"));
  EXPECT_EQ(inner.find("x"), nullptr);
}

TEST(Graph, RenameKeepsNamesUniqueInAllScopes) {
  const auto graph = branching();
  graph->rename(graph->find("x"), "image");
  EXPECT_EQ(graph->find("x"), nullptr);
  EXPECT_EQ(graph->find("image")->name(), "image");
  graph->rename(graph->find("image"), "image");
  EXPECT_EQ(kind_of([&] { graph->rename(graph->find("image"), "y"); }), ErrorKind::model);
  EXPECT_EQ(kind_of([&] { graph->rename(graph->find("image"), ""); }), ErrorKind::model);
  // The branch that reads the image has a value of its own named "t".
  EXPECT_EQ(kind_of([&] { graph->rename(graph->find("image"), "t"); }), ErrorKind::model);
  Graph& branch = body(*graph, "then_branch");
  EXPECT_EQ(kind_of([&] { branch.rename(branch.find("t"), "y"); }), ErrorKind::model);
  verify(*graph);
}

TEST(Graph, ReplaceAllUsesReachesBodiesAndOutputs) {
  const auto graph = branching();
  Value* const x = graph->find("x");
  Value* const other = graph->add_input("other", f32({2}));
  graph->add_output(x);
  graph->replace_all_uses(x, other);
  EXPECT_TRUE(x->is_unused());
  EXPECT_EQ(graph->outputs().back(), other);
  EXPECT_EQ(body(*graph, "then_branch").nodes().front()->input(0), other);
  EXPECT_EQ(body(*graph, "else_branch").outputs().front(), other);
  verify(*graph);
  graph->replace_all_uses(other, other);
  verify(*graph);
}

TEST(Graph, MoveChangesTheOrder) {
  const auto graph = chain();
  Node* const first = graph->nodes().front().get();
  Node* const last = graph->nodes().back().get();
  EXPECT_EQ(graph->next(first), last);
  EXPECT_EQ(graph->next(last), nullptr);
  Node* const between = graph->add_node("Neg", "", {graph->find("x")}, {"n"}, {}, last);
  EXPECT_EQ(graph->next(first), between);
  graph->move(between, first);
  EXPECT_EQ(graph->nodes().front().get(), between);
  graph->move(between, nullptr);
  EXPECT_EQ(graph->nodes().back().get(), between);
  graph->move(between, between);
  verify(*graph);
}

TEST(Graph, DiesQuietlyWhenOutOfOrder) {
  const auto graph = chain();
  graph->move(graph->nodes().front().get(), nullptr);
  EXPECT_EQ(kind_of([&] { verify(*graph); }), ErrorKind::model);
  const auto outer = branching();  // a producer that stands behind the body that reads it
  Node* const late = outer->add_node("Neg", "", {outer->find("x")}, {"late"});
  body(*outer, "then_branch").nodes().front()->set_input(0, late->output());
}

TEST(Graph, ManyReadersOfOneValueTakeLinearTime) {
  constexpr int kCount = 100000;
  Graph graph;
  Value* x = graph.add_input("x", f32({2}));
  for (int i = 0; i < kCount; ++i) graph.add_node("Neg", "", {x}, {"n" + std::to_string(i)});
  Value* const other = graph.add_input("other", f32({2}));
  graph.replace_all_uses(x, other);
  EXPECT_EQ(other->uses().size(), static_cast<std::size_t>(kCount));
  for (int i = 0; i < kCount; ++i) {  // from the front, each read once more at the end
    graph.add_node("Neg", "", {other}, {"again" + std::to_string(i)});
    graph.remove(graph.nodes().front().get());
  }
  EXPECT_EQ(other->uses().size(), static_cast<std::size_t>(kCount));
}  // and its end: quadratic would be minutes

TEST(Graph, TheLastReaderTakesThePlaceOfOneThatLeaves) {
  Graph graph;
  Value* const x = graph.add_input("x", f32({2}));
  std::vector<Node*> nodes;
  for (const char* name : {"a", "b", "c"}) nodes.push_back(graph.add_node("Neg", "", {x}, {name}));
  Node* const both = graph.add_node("Mul", "", {x, x}, {"square"});
  nodes[0]->set_input(0, nullptr);
  EXPECT_THAT(x->uses(),
              ElementsAre(Use{both, 1}, Use{nodes[1], 0}, Use{nodes[2], 0}, Use{both, 0}));
  both->set_input(1, nodes[2]->output());
  both->trim_inputs();
  graph.remove(nodes[1]);
  EXPECT_THAT(x->uses(), ElementsAre(Use{both, 0}, Use{nodes[2], 0}));
  verify(graph);
}

TEST(Value, BytesOfAllElements) {
  Graph graph;
  EXPECT_EQ(graph.add_input("x", f32({2, 3}))->bytes(), 24U);
  EXPECT_EQ(graph.add_input("scalar", f32({}))->bytes(), 4U);
  const Value* const open = graph.add_input("open", {DType::f32, SymShape{Dim("batch"), Dim(3)}});
  const Error error = error_of([&] { open->bytes(); });
  EXPECT_EQ(error.kind(), ErrorKind::shape);
  EXPECT_THAT(error.what(), HasSubstr("f32[batch,3]"));
  EXPECT_EQ(kind_of([&] { graph.add_input("rankless", {})->bytes(); }), ErrorKind::shape);
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  EXPECT_EQ(kind_of([&] {
              graph.add_input("huge", f32({kHuge, kHuge}))->bytes();
            }),
            ErrorKind::shape);
}

TEST(Graph, ConstantsOfOneShapeShareItsDims) {
  Graph graph("g");
  const auto dims = [&](const Tensor& tensor) {
    return &graph.add_initializer("", tensor)->shape()->dims();
  };
  const auto* const first = dims(Tensor::zeros(DType::f32, {2, 3}));
  EXPECT_EQ(dims(Tensor::zeros(DType::i64, {2, 3})), first);
  EXPECT_NE(dims(Tensor::zeros(DType::f32, {3, 2})), first);
  for (std::int64_t i = 1; i < 300; ++i) {  // more than are kept
    EXPECT_EQ(*dims(Tensor::zeros(DType::f32, {i})), SymShape{i}.dims()) << i;
  }
  SymShape changed = *graph.initializers().front()->shape();
  changed[0] = 5;
  EXPECT_EQ(graph.initializers()[1]->known_shape(), (Shape{2, 3}));
}

TEST(Graph, NumbersANameThatIsTaken) {
  Graph graph("g");
  std::string names;
  for (int i = 0; i < 4; ++i) {
    names += graph.add_input(graph.unique_name("x"), {})->name() + " ";
  }
  EXPECT_EQ(names, "x x_1 x_2 x_3 ");
}

TEST(GraphClone, IsEqualAndIndependent) {
  const auto graph = branching();
  graph->doc = "doc";
  graph->preserved = "bytes";
  graph->nodes().front()->doc = "node doc";
  graph->nodes().front()->preserved = "node bytes";
  graph->preserve(graph->find("x")).info = "info";
  graph->preserve(graph->find("y")).in_value_info = true;
  graph->find("w")->is_variable = true;
  graph->find("w")->role = Role::buffer;
  const std::string before = print(*graph);
  ValueMap map;
  const auto copy = graph->clone(&map);
  verify(*copy);
  EXPECT_EQ(print(*copy), before);
  EXPECT_EQ(copy->doc + copy->preserved + copy->nodes().front()->doc.str(), "docbytesnode doc");
  EXPECT_EQ(copy->nodes().front()->preserved, "node bytes");
  EXPECT_EQ(copy->preserved_of(copy->find("x")).info, "info");
  EXPECT_TRUE(copy->preserved_of(copy->find("y")).in_value_info);
  EXPECT_TRUE(copy->find("w")->is_variable);
  EXPECT_EQ(copy->find("w")->role, Role::buffer);
  EXPECT_EQ(map.at(graph->find("x")), copy->find("x"));
  EXPECT_EQ(copy->find("w")->initializer().data(), graph->find("w")->initializer().data());

  // Bodies are copies that read the copy's values.
  Graph& branch = body(*copy, "then_branch");
  EXPECT_NE(&branch, &body(*graph, "then_branch"));
  EXPECT_EQ(branch.parent(), copy.get());
  EXPECT_EQ(branch.nodes().front()->input(0), copy->find("x"));
  EXPECT_EQ(body(*copy, "else_branch").outputs().front(), copy->find("x"));

  branch.rename(branch.find("t"), "changed");
  copy->rename(copy->find("x"), "image");
  copy->set_outputs({});
  copy->remove(copy->nodes().back().get());
  EXPECT_EQ(print(*graph), before);
  verify(*graph);
  verify(*copy);
}

TEST(GraphClone, OfABodyKeepsReadingTheOuterGraph) {
  const auto graph = branching();
  const std::size_t readers = graph->find("x")->uses().size();
  {
    const auto copy = body(*graph, "then_branch").clone(nullptr, graph.get());
    EXPECT_EQ(copy->nodes().front()->input(0), graph->find("x"));
    EXPECT_EQ(graph->find("x")->uses().size(), readers + 1);
    verify(*copy);
  }
  EXPECT_EQ(graph->find("x")->uses().size(), readers);
  verify(*graph);
}

TEST(GraphClone, CopiesAGraphThatIsOutOfOrder) {
  const auto graph = chain();
  graph->move(graph->nodes().front().get(), nullptr);
  const auto copy = graph->clone();
  EXPECT_EQ(print(*copy), print(*graph));
  EXPECT_EQ(&copy->nodes().front()->input(0)->graph(), copy.get());
}

TEST(Node, LabelNamesItAsWellAsItCan) {
  Graph graph;
  Node* const node = graph.add_node("Conv", "", {}, {"", "y"});
  EXPECT_EQ(node->label(), "Conv node producing 'y'");
  node->set_name("conv1");
  EXPECT_EQ(node->label(), "Conv node 'conv1'");
}

TEST(Value, KnownShape) {
  Graph graph;
  EXPECT_EQ(graph.add_input("a", f32({2}))->known_shape(), Shape{2});
  Value* const b = graph.add_input("b", {DType::f32, SymShape{Dim("N")}});
  const Error error = error_of([&] { b->known_shape(); });
  EXPECT_EQ(error.kind(), ErrorKind::shape);
  EXPECT_STREQ(error.what(), "the shape of 'b' is not known: f32[N]");
  EXPECT_EQ(text(ValueType{}), "?");
}

}  // namespace
}  // namespace graft
