#include "core/graph/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "tests/core/error_of.h"
#include "tests/core/graph/small_graphs.h"

namespace graft {
namespace {

using testing::HasSubstr;

/// x -> conv -> relu -> pool_out -> fc -> probs, with a mask that only `probs` needs.
Model classifier() {
  Model model;
  Graph& graph = model.graph();
  graph.name = "main";
  Value* const x = graph.add_input("x", f32({1, 3}));
  Value* const mask = graph.add_input("mask", f32({1, 2}));
  Value* const w = graph.add_initializer("w", Tensor::zeros(DType::f32, {3, 4}));
  Value* const fc = graph.add_initializer("fc.w", Tensor::zeros(DType::f32, {4, 2}));
  const auto add = [&](std::string_view op, const std::vector<Value*>& inputs, const char* name,
                       const SymShape& shape) {
    Node* const node = graph.add_node(op, "", inputs, {name});
    node->set_name(std::string("node_") + name);
    node->output()->set_type(f32(shape));
    return node->output();
  };
  Value* const h = add("MatMul", {x, w}, "h", {1, 4});
  Value* const pooled = add("Relu", {h}, "pool_out", {1, 4});
  Value* const logits = add("MatMul", {pooled, fc}, "logits", {1, 2});
  graph.add_output(add("Mul", {logits, mask}, "probs", {1, 2}));
  return model;
}

TEST(Truncate, KeepsOnlyWhatTheValueNeeds) {
  Model model = classifier();
  model.metadata = {{"author", "me"}};
  model.graph().nodes().front()->doc = "first";
  edit::truncate(model, "pool_out");
  EXPECT_EQ(print(model, {.node_names = true}), R"(main(x: f32[1,3]) -> (pool_out: f32[1,4])
  w: f32[3,4] = initializer
  h: f32[1,4] = MatMul(x, w)  # node_h
  pool_out: f32[1,4] = Relu(h)  # node_pool_out
)");
  EXPECT_EQ(model.graph().nodes().front()->doc, "first");
  EXPECT_EQ(model.metadata.size(), 1U);
  verify(model);
}

TEST(Truncate, TakesTheNameOfANodeToo) {
  Model model = classifier();
  edit::truncate(model, "node_logits");
  EXPECT_EQ(model.graph().outputs()[0]->name(), "logits");
  EXPECT_EQ(model.graph().node_count(), 3U);
  verify(model);
}

TEST(Truncate, RefusesANodeNameThatSeveralHave) {
  Model model = classifier();
  for (const auto& node : model.graph().nodes()) node->set_name("same");
  EXPECT_THAT(error_of([&] { edit::truncate(model, "same"); }).what(),
              HasSubstr("4 nodes are named 'same'; name a value instead: 'h', 'pool_out'"));
}

TEST(Truncate, UnknownNameListsCloseOnesOrTheLast) {
  Model model = classifier();
  const std::string before = print(model);
  const Error close = error_of([&] { edit::truncate(model, "pool_ot"); });
  EXPECT_EQ(close.kind(), ErrorKind::argument);
  EXPECT_STREQ(close.what(),
               "truncate: no value or node is named 'pool_ot'; close names: 'pool_out'");
  EXPECT_STREQ(error_of([&] { edit::truncate(model, "avgpooling"); }).what(),
               "truncate: no value or node is named 'avgpooling'; the last values are: 'probs', "
               "'logits', 'pool_out', 'h'");
  EXPECT_EQ(print(model), before);
}

TEST(Truncate, RefusesInputsAndInitializers) {
  Model model = classifier();
  EXPECT_EQ(kind_of([&] { edit::truncate(model, "x"); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { edit::truncate(model, "w"); }), ErrorKind::argument);
}

TEST(Truncate, KeepsWhatBodiesRead) {
  Model model;
  model.set_graph(branching());
  edit::truncate(model, "y");
  EXPECT_EQ(print(model), R"(main(x: f32[2], c: bool[]) -> (y: f32[2])
  y: f32[2] = If(c)
    then_branch = then() -> (t: f32[2])
      t: f32[2] = Neg(x)
    else_branch = else() -> (x: f32[2])
)");
  verify(model);
}

TEST(Truncate, FormerOutputsKeepTheirDeclaredType) {
  Model model = classifier();
  model.graph().add_output(model.graph().find("h"));
  edit::truncate(model, "pool_out");
  const Graph& graph = model.graph();
  EXPECT_TRUE(graph.preserved_of(graph.find("h")).in_value_info);
  EXPECT_FALSE(graph.preserved_of(graph.find("pool_out")).in_value_info);
}

TEST(Extract, CutsBetweenValues) {
  Model model = classifier();
  edit::extract(model, {"pool_out", "mask"}, {"probs", "logits"});
  EXPECT_EQ(print(model),
            R"(main(mask: f32[1,2], pool_out: f32[1,4]) -> (probs: f32[1,2], logits: f32[1,2])
  fc.w: f32[4,2] = initializer
  logits: f32[1,2] = MatMul(pool_out, fc.w)
  probs: f32[1,2] = Mul(logits, mask)
)");
  verify(model);
}

TEST(Extract, WithoutInputsTakesThoseNeeded) {
  Model model = classifier();
  edit::extract(model, {}, {"h"});
  EXPECT_EQ(print(model), R"(main(x: f32[1,3]) -> (h: f32[1,4])
  w: f32[3,4] = initializer
  h: f32[1,4] = MatMul(x, w)
)");
  verify(model);
}

TEST(Extract, CutsWhatABodyReads) {
  Model model;
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", f32({2}));
  Value* const h = graph.add_node("Neg", "", {x}, {"h"})->output();
  h->set_type(f32({2}));
  auto inner = std::make_shared<Graph>("inner", &graph);
  Value* const h_1 = inner->add_node("Abs", "", {h}, {"h_1"})->output();
  inner->add_output(h_1);
  Value* const c = graph.add_input("c", {DType::boolean, SymShape()});
  graph.add_output(graph.add_node("If", "", {c}, {"y"}, {{"then_branch", inner}})->output());
  edit::extract(model, {"h", "c"}, {"y"});
  EXPECT_EQ(print(model), R"(graph(c: bool[], h: f32[2]) -> (y: ?)
  y: ? = If(c)
    then_branch = inner() -> (h_1: ?)
      h_1: ? = Abs(h)
)");
  verify(model);
}

TEST(Extract, RefusesWhatItCannotCut) {
  Model model = classifier();
  const std::string before = print(model);
  const auto refusal = [&](const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs) {
    const Error error = error_of([&] { edit::extract(model, inputs, outputs); });
    EXPECT_EQ(error.kind(), ErrorKind::argument);
    EXPECT_EQ(print(model), before);
    return std::string(error.what());
  };
  EXPECT_THAT(refusal({"pool_out"}, {"probs"}), HasSubstr("also need graph input 'mask'"));
  EXPECT_THAT(refusal({"h"}, {"h"}), HasSubstr("'h' is an input"));
  EXPECT_THAT(refusal({"w"}, {"h"}), HasSubstr("'w' cannot become an input: it is an initializer"));
  EXPECT_THAT(refusal({"x", "x"}, {"h"}), HasSubstr("named twice"));
  EXPECT_THAT(refusal({"x"}, {"h", "h"}), HasSubstr("named twice"));
  EXPECT_THAT(refusal({"x"}, {}), HasSubstr("no output"));
  EXPECT_THAT(refusal({"y"}, {"h"}), HasSubstr("no value or node is named 'y'"));
  model.graph().find("h")->set_type({});
  const Error error = error_of([&] { edit::extract(model, {"h"}, {"logits"}); });
  EXPECT_THAT(error.what(), HasSubstr("of unknown type; infer types first"));
}

TEST(RemoveUnused, RemovesDeadChainsAlsoInBodies) {
  const auto graph = branching();
  Value* const x = graph->find("x");
  Value* const spare = graph->add_initializer("spare", Tensor::scalar(1.0F));
  Value* const dead =
      graph->add_node("Add", "", {x, spare}, {"dead"}, {}, graph->nodes().front().get())->output();
  Graph& branch = body(*graph, "then_branch");
  branch.add_node("Neg", "", {dead}, {"dead_too"});
  branch.add_initializer("dead_constant", Tensor::scalar(1.0F));
  graph->add_node("Print", "local", {x}, {});  // no outputs: there for its effect
  EXPECT_EQ(edit::remove_unused(*graph), 4U);
  EXPECT_EQ(edit::remove_unused(*graph), 0U);
  EXPECT_EQ(graph->find("dead"), nullptr);
  EXPECT_EQ(graph->find("spare"), nullptr);
  EXPECT_EQ(branch.node_count(), 1U);
  EXPECT_EQ(graph->node_count(), 3U);
  verify(*graph);
}

TEST(RemoveUnused, KeepsInputsWithDefaultsAndNodesWithOneLiveOutput) {
  Graph graph;
  Value* const x = graph.add_input("x", f32({2}));
  graph.add_input("unused", f32({2}));
  graph.add_initializer("unused", Tensor::zeros(DType::f32, {2}));
  Node* const split = graph.add_node("Split", "", {x}, {"a", "b"});
  graph.add_output(split->output(1));
  EXPECT_EQ(edit::remove_unused(graph), 0U);
  EXPECT_EQ(graph.inputs().size(), 2U);
}

TEST(Rename, ChangesOneName) {
  Model model = classifier();
  edit::rename(model, "probs", "output");
  EXPECT_EQ(model.graph().outputs()[0]->name(), "output");
  EXPECT_EQ(kind_of([&] { edit::rename(model, "probs", "p"); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { edit::rename(model, "output", "x"); }), ErrorKind::model);
  verify(model);
}

TEST(Rename, RefusesANameThatABodyHolds) {
  Model model;
  Graph& graph = model.graph();
  Value* const condition = graph.add_input("c", {DType::boolean, SymShape{}});
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2}});
  const auto branch = std::make_shared<Graph>("then", &graph);
  branch->add_output(branch->add_node("Relu", "", {x}, {"hidden"})->output());
  graph.add_output(
      graph.add_node("If", "", {condition}, {"y"}, {{"then_branch", branch}})->output());
  EXPECT_TRUE(edit::is_name_of_body(graph, "hidden"));
  EXPECT_FALSE(edit::is_name_of_body(graph, "x"));
  EXPECT_EQ(kind_of([&] { edit::rename(model, "y", "hidden"); }), ErrorKind::model);
  edit::rename(model, "y", "z");
}

TEST(SeparateInitializers, IdentityOfAConstantBecomesAConstantOfItsOwn) {
  Graph graph;
  Value* const x = graph.add_input("x", f32({2}));
  Value* const w = graph.add_initializer("w", Tensor::from<float>({2}, {1, 1}));
  Value* const v = graph.add_node("Identity", "", {w}, {"v"})->output();
  Value* const copy = graph.add_node("Identity", "", {x}, {"copy"})->output();
  Value* const product = graph.add_node("Mul", "", {copy, v}, {"product"})->output();
  graph.add_output(graph.add_node("Mul", "", {product, w}, {"y"})->output());
  EXPECT_EQ(edit::separate_initializers(graph), 1U);
  EXPECT_EQ(graph.node_count(), 3U);
  Value* const own = product->producer()->input(1);
  EXPECT_EQ(own->name(), "v");
  ASSERT_TRUE(own->is_initializer());
  EXPECT_NE(own->initializer().data(), w->initializer().data());
  EXPECT_EQ(own->initializer().values<const float>()[1], 1.0F);
  verify(graph);
  EXPECT_EQ(edit::separate_initializers(graph), 0U);
}

TEST(SeparateInitializers, StatisticsPartFromParameters) {
  Graph graph;
  Value* const x = graph.add_input("x", f32({2, 2}));
  Value* const ones = graph.add_initializer("bn.weight", Tensor::from<float>({2}, {1, 1}));
  Value* const zeros = graph.add_initializer("shift", Tensor::zeros(DType::f32, {2}));
  Node* const norm = graph.add_node("BatchNormalization", "", {x, ones, zeros, zeros, ones}, {"y"});
  graph.add_output(norm->output());
  EXPECT_EQ(edit::separate_initializers(graph), 2U);
  EXPECT_EQ(norm->input(1), ones);
  EXPECT_EQ(norm->input(2), zeros);
  EXPECT_EQ(norm->input(3)->name(), "shift_running_mean");
  EXPECT_EQ(norm->input(4)->name(), "bn.running_var");
  EXPECT_EQ(norm->input(4)->initializer().values<const float>()[0], 1.0F);
  EXPECT_NE(norm->input(4)->initializer().data(), ones->initializer().data());
  verify(graph);
  EXPECT_EQ(edit::separate_initializers(graph), 0U);
}

}  // namespace
}  // namespace graft
