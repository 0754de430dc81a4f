#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/edit.h"
#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "tests/core/error_of.h"
#include "tests/core/graph/small_graphs.h"

namespace graft {
namespace {

using testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

/// y = Reshape(x, target), x: f32[in], with the target as an initializer.
Model reshape(const SymShape& in, const Ints& target, const SymShape& out) {
  Model model;
  Graph& graph = model.graph();
  graph.name = "main";
  Value* const x = graph.add_input("x", f32(in));
  Value* const shape = graph.add_initializer(
      "s", Tensor::from(Shape{static_cast<std::int64_t>(target.size())}, target));
  Value* const y = graph.add_node("Reshape", "", {x, shape}, {"y"})->output();
  y->set_type(f32(out));
  graph.add_output(y);
  return model;
}

std::string first_line(const Model& model) {
  const std::string all = print(model);
  return all.substr(0, all.find('\n'));
}

TEST(SetBatch, RenamesASymbolWhereverItStands) {
  Model model;
  model.set_graph(chain());
  Graph& graph = model.graph();
  graph.find("x")->set_type(f32({Dim("batch"), 2, Dim("batch")}));
  graph.find("h")->set_type(f32({2, Dim("batch"), Dim("T")}));
  graph.find("y")->set_type({DType::f32});
  edit::set_batch(model, 8);
  EXPECT_EQ(text(graph.find("x")->type()), "f32[8,2,8]");
  EXPECT_EQ(text(graph.find("h")->type()), "f32[2,8,T]");
  EXPECT_EQ(text(graph.find("w")->type()), "f32[2]");
  edit::set_batch(model, std::nullopt);
  EXPECT_EQ(text(graph.find("x")->type()), "f32[N,2,8]");
  verify(model);
}

TEST(SetBatch, KeepsASymbolThatIsThere) {
  Model model = reshape({Dim("batch"), 4}, {-1, 2, 2}, {Dim("batch"), 2, 2});
  const std::string before = print(model);
  edit::set_batch(model, std::nullopt);
  EXPECT_EQ(print(model), before);
}

TEST(SetBatch, ANewSymbolMeansNothingElse) {
  Model model = reshape({1, Dim("N")}, {-1}, {Dim("N")});
  edit::set_batch(model, std::nullopt);
  EXPECT_EQ(text(model.graph().find("x")->type()), "f32[N1,N]");
}

/// An output's own symbol is none of the batch's.
TEST(SetBatch, ANewSymbolIsThatOfNoComputedValueEither) {
  Model model = reshape({2, 4}, {-1}, {Dim("N")});
  edit::set_batch(model, std::nullopt);
  EXPECT_EQ(text(model.graph().find("x")->type()), "f32[N1,4]");
}

TEST(SetBatch, ForgetsDimsThatMayComeFromABakedBatch) {
  Model model = reshape({4, 3}, {-1}, {12});
  Graph& graph = model.graph();
  Node* const node = graph.add_node("Op", "local", {graph.find("y")}, {"z"});
  node->output()->set_type(f32({7, 8, 3, Dim("T")}));
  edit::set_batch(model, 2);
  EXPECT_EQ(first_line(model), "main(x: f32[2,3]) -> (y: f32[?])");
  EXPECT_EQ(text(node->output()->type()), "f32[?,?,3,T]");
  edit::set_batch(model, 2);  // nothing to change, nothing to forget
}

TEST(SetBatch, FreesAReshapeThatStartsWithTheBatch) {
  Model model = reshape({1, 512, 1, 1}, {1, 512}, {1, 512});
  edit::set_batch(model, std::nullopt);
  EXPECT_EQ(print(model), R"(main(x: f32[N,512,1,1]) -> (y: f32[?,512])
  s: i64[2] = {-1, 512}
  y: f32[?,512] = Reshape(x, s)
)");
  verify(model);
}

TEST(SetBatch, CopiesTheBatchWhereTheRestIsInferred) {
  Model model = reshape({2, 6, 4}, {2, -1}, {2, 24});
  edit::set_batch(model, 5);
  EXPECT_EQ(to_int64(model.graph().find("s")->initializer()), (Ints{0, -1}));
}

TEST(SetBatch, LeavesOtherReadersOfASharedConstantAlone) {
  Model model = reshape({1, 4}, {1, 4}, {1, 4});
  Graph& graph = model.graph();
  Value* const w = graph.add_initializer("w", Tensor::zeros(DType::f32, {4}));
  Value* const row = graph.add_node("Reshape", "", {w, graph.find("s")}, {"row"})->output();
  row->set_type(f32({1, 4}));
  graph.add_output(graph.add_node("Add", "", {graph.find("y"), row}, {"z"})->output());
  edit::set_batch(model, 3);
  EXPECT_EQ(print(model), R"(main(x: f32[3,4]) -> (y: f32[?,4], z: ?)
  s: i64[2] = {1, 4}
  w: f32[4] = initializer
  s_1: i64[2] = Constant() {value = i64[2]{-1, 4}}
  y: f32[?,4] = Reshape(x, s_1)
  row: f32[1,4] = Reshape(w, s)
  z: ? = Add(y, row)
)");
  verify(model);
}

TEST(SetBatch, FreesTargetsInConstantNodesAndAttributes) {
  Model model;
  Graph& graph = model.graph();
  graph.name = "main";
  Value* const x = graph.add_input("x", f32({1, 4}));
  Value* const target =
      graph.add_node("Constant", "", {}, {"t"}, {{"value_ints", Ints{1, 2, 2}}})->output();
  Value* const y = graph.add_node("Reshape", "", {x, target}, {"y"})->output();
  graph.add_output(graph.add_node("Reshape", "", {y}, {"z"}, {{"shape", Ints{1, 4}}})->output());
  edit::set_batch(model, 3);
  EXPECT_EQ(print(model), R"(main(x: f32[3,4]) -> (z: ?)
  t_1: i64[3] = Constant() {value = i64[3]{-1, 2, 2}}
  y: ? = Reshape(x, t_1)
  z: ? = Reshape(y) {shape = [-1, 4]}
)");
  verify(model);
}

TEST(SetBatch, ReachesBodies) {
  Model model;
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", f32({1, 4}));
  Value* const c = graph.add_initializer("c", Tensor::scalar(true));
  auto inner = std::make_shared<Graph>("inner", &graph);
  Value* const s = inner->add_initializer("s", Tensor::from<std::int64_t>({1}, {1}));
  Value* const t = inner->add_node("Reshape", "", {x, s}, {"t"})->output();
  t->set_type(f32({1}));
  inner->add_output(t);
  graph.add_output(graph.add_node("If", "", {c}, {"y"}, {{"then_branch", inner}})->output());
  edit::set_batch(model, 6);
  EXPECT_EQ(to_int64(s->initializer()), Ints{-1});
  EXPECT_EQ(text(t->type()), "f32[?]");
}

TEST(SetBatch, RefusesTargetsThatFixTheNumberOfElements) {
  for (const Ints& target : {Ints{6, 4}, Ints{3, 2, 4}}) {
    Model model = reshape({1, 6, 4}, target, {});
    model.graph().nodes().front()->set_name("merge");
    const std::string before = print(model);
    const Error error = error_of([&] { edit::set_batch(model, 2); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("Reshape node 'merge' turns f32[1,6,4] into the constant"));
    EXPECT_EQ(print(model), before);
  }
  // The data does not start with the batch, so 0 would copy something else.
  Model model = reshape({2, 3}, {-1, 3}, {2, 3});
  Graph& graph = model.graph();
  Value* const flat = graph.add_node("Transpose", "", {graph.find("y")}, {"flat"})->output();
  flat->set_type(f32({3, 2}));
  Value* const s = graph.add_initializer("again", Tensor::from<std::int64_t>({2}, {2, -1}));
  graph.add_node("Reshape", "", {flat, s}, {"z"});
  EXPECT_EQ(kind_of([&] { edit::set_batch(model, 4); }), ErrorKind::unsupported);
}

TEST(SetBatch, LeavesTargetsThatTakeAnyBatch) {
  for (const Ints& target : {Ints{-1, 24}, Ints{0, 24}, Ints{-1}, Ints{}}) {
    Model model = reshape({1, 6, 4}, target, {});
    edit::set_batch(model, 2);
    EXPECT_EQ(to_int64(model.graph().find("s")->initializer()), target);
  }
}

TEST(SetBatch, SkipsDefaultsScalarsAndUnknownRanks) {
  Model model = reshape({1, 4}, {-1, 4}, {1, 4});
  Graph& graph = model.graph();
  graph.add_input("scalar", f32({}));
  graph.add_input("unknown", {DType::f32});
  graph.add_input("k", f32({2}));
  graph.add_initializer("k", Tensor::zeros(DType::f32, {2}));
  edit::set_batch(model, 2);
  EXPECT_EQ(first_line(model),
            "main(x: f32[2,4], scalar: f32[], unknown: f32, k: f32[2] = initializer) -> (y: "
            "f32[?,4])");
}

TEST(SetBatch, RefusesSenselessRequests) {
  Model model = reshape({1, 4}, {-1, 4}, {1, 4});
  EXPECT_EQ(kind_of([&] { edit::set_batch(model, 0); }), ErrorKind::argument);
  model.graph().add_input("rois", f32({300, 4}));
  EXPECT_THAT(error_of([&] { edit::set_batch(model, 2); }).what(),
              HasSubstr("'rois' starts with 300, another input with 1"));
  Model none;
  EXPECT_EQ(kind_of([&] { edit::set_batch(none, 2); }), ErrorKind::argument);
}

}  // namespace
}  // namespace graft
