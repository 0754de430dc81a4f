// What inspect and bench say is what runs: the memory of steps, and the passes.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/layers/nets.h"
#include "core/ops/builder.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"
#include "train/train_step.h"

namespace graft::testing {
namespace {

using nlohmann::json;

class Inspect : public ToolTest {
 protected:
  /// softmax(x x^T) x, as exporters spell attention out, and a linear layer.
  std::string write_attention() const {
    Model model;
    model.set_opset("", 17);
    Graph& graph = model.graph();
    Builder builder(graph);
    const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 6, 4}}));
    const Expr w = builder.expr(graph.add_initializer("w", Tensor::full(DType::f32, {4, 4}, 0.5)));
    const Expr scores = matmul(x, transpose(x, {0, 2, 1}));
    const Expr mixed = matmul(call("Softmax", {scores}, {{"axis", -1}}), x);
    graph.add_output(matmul(mixed, w).value());
    onnx::save(model, path("attention.onnx"));
    return path("attention.onnx");
  }
};

TEST_F(Inspect, TakesOneShapeAtATimeAndTheModelBehindIt) {
  const std::string file = write_attention();
  EXPECT_THAT(run_graft({"inspect", "--shape", "x=5x6x4", file}), Succeeds());
  EXPECT_THAT(run_graft({"inspect", "--shape", "5x6x4", file}), FailsWith(1, "wanted NAME=SHAPE"));
}

TEST_F(Inspect, PlansTheMemoryThatAStepPlans) {
  const Shape sample{3, 32, 32};
  for (const std::string net : {"mlp", "lenet", "resnet18", "resnet20", "mobilenetv2"}) {
    const std::string file = path(net + ".onnx");
    Model model = make_net(net, sample, 10);
    onnx::save(model, file);
    for (const std::int64_t batch : {1, 2, 7, 32, 128}) {
      const Outcome outcome =
          run_graft({"inspect", file, "--json", "--optimizer", "adam", "--batch", text(batch)});
      ASSERT_THAT(outcome, Succeeds());
      const json found = json::parse(outcome.out);
      TrainStep step(model, {.loss = loss_from_name(found["loss_name"].get<std::string>()),
                             .optimizer = optimizer_from_name("adam")});
      step.plan({Tensor::zeros(DType::f32, {batch, 3, 32, 32})},
                Tensor::zeros(DType::i64, {batch}));
      EXPECT_EQ(found["arena_bytes"], step.arena_bytes()) << net << ", batch " << batch;
      EXPECT_EQ(found["parameter_bytes"], step.parameter_bytes()) << net;
      EXPECT_EQ(found["optimizer_bytes"], step.state_bytes()) << net;
    }
  }
}

TEST_F(Inspect, ShowsWhatPassesDo) {
  const std::string file = write_attention();
  const Outcome table = run_graft({"inspect", file, "--passes"});
  ASSERT_THAT(table, Succeeds());
  EXPECT_THAT(table.out, HasSubstr("training step, batch of 1\n"));
  EXPECT_THAT(table.out, HasSubstr("inference, batch of 1\n"));
  EXPECT_THAT(table.out, HasSubstr("  fuse_attention *\n"));
  EXPECT_THAT(table.out, HasSubstr("  fuse_layer_norm\n")) << "it ran and changed nothing";
  EXPECT_THAT(table.out, HasSubstr("  add_gradients *\n"));

  const Outcome lines = run_graft({"inspect", file, "--passes", "--json"});
  ASSERT_THAT(lines, Succeeds());
  const json training = json::parse(lines.out.substr(0, lines.out.find('\n')));
  bool has_fusion = false;
  for (const json& pass : training["passes"]) {
    if (pass["name"] != "fuse_attention") continue;
    has_fusion = true;
    EXPECT_LT(pass["nodes_after"], pass["nodes_before"]);
    EXPECT_EQ(pass["changed"], true);
  }
  EXPECT_TRUE(has_fusion);
}

TEST_F(Inspect, ShowsTheGraphBehindAPass) {
  const std::string file = write_attention();
  const Outcome before = run_graft({"inspect", file, "--batch", "3", "--passes", "split_stacks"});
  ASSERT_THAT(before, Succeeds());
  EXPECT_THAT(before.out, HasSubstr("# training step, batch of 3, behind split_stacks\n"));
  EXPECT_THAT(before.out, HasSubstr("f32[3,6,6] = Softmax("));
  const Outcome behind = run_graft({"inspect", file, "--passes", "fuse_attention"});
  EXPECT_THAT(behind.out, HasSubstr("ai.graft.TiledAttention(x, x, x)"));
  EXPECT_THAT(behind.out, Not(HasSubstr("Softmax(")));
  EXPECT_THAT(run_graft({"inspect", file, "--passes", "decompose_where_needed"}).out,
              HasSubstr("# inference, batch of 1, behind decompose_where_needed\n"));
  EXPECT_THAT(run_graft({"inspect", file, "--passes", "fuse_attentions"}),
              FailsWith(1, "no pass 'fuse_attentions' ran; those that did: upgrade_opset, "));
}

TEST_F(Inspect, BenchMeasuresWhatASessionRuns) {
  const Outcome outcome = run_graft(
      {"bench", write_attention(), "--batch", "2", "--seconds", "0.01", "--profile", "--json"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.error, HasSubstr("TiledAttention by "));
  EXPECT_THAT(outcome.error, Not(HasSubstr("Softmax by ")));
}

/// y = softmax(x w), and z = x w, with the batch fixed to 4.
std::string write_two_ends(const std::string& file, const SymShape& shape) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, shape}));
  const Expr w = builder.expr(graph.add_initializer("w", Tensor::full(DType::f32, {6, 3}, 0.5)));
  const Expr mask =
      builder.expr(graph.add_initializer("mask", Tensor::from<float>({3}, {0, -1e9F, 0})));
  const Expr z = matmul(x, w);
  graph.rename(z.value(), "logits");
  const Expr y = call("Softmax", {z + mask}, {{"axis", -1}});
  graph.rename(y.value(), "probabilities");
  graph.add_output(y.value());
  graph.add_output(z.value());
  onnx::save(model, file);
  return file;
}

TEST_F(Inspect, SaysWhatIsSuspiciousAndWhatRepairsIt) {
  const std::string file = write_two_ends(path("ends.onnx"), SymShape{4, 6});
  const Outcome outcome = run_graft({"inspect", file});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("output 'probabilities' holds probabilities (Softmax node"));
  EXPECT_THAT(outcome.out, HasSubstr("remedy: edit MODEL --strip-probabilities --out OUT"));
  EXPECT_THAT(outcome.out, HasSubstr("'x' is f32[4,6], which fixes the batch to 4"));
  EXPECT_THAT(outcome.out, HasSubstr("remedy: edit MODEL --batch any --out OUT"));
  EXPECT_THAT(outcome.out, HasSubstr("output 'logits': trains too, by --output logits"));
  EXPECT_THAT(outcome.out, HasSubstr("mask f32[3]: nothing reads it as a weight"));
  EXPECT_THAT(outcome.out, HasSubstr("with a batch of 4"));
}

TEST_F(Inspect, JudgesTheOutputAndTheShapesThatAreAskedFor) {
  const std::string file =
      write_two_ends(path("open.onnx"), SymShape{Dim("N"), Dim("T"), Dim("F")});
  const Outcome open = run_graft({"inspect", file});
  EXPECT_THAT(open.out, HasSubstr("is not known; say it by --shape x=NxTxF"));
  const Outcome outcome =
      run_graft({"inspect", file, "--json", "--output", "logits", "--shape", "x=2x5x6"});
  ASSERT_THAT(outcome, Succeeds());
  const json found = json::parse(outcome.out);
  EXPECT_EQ(found["output"], "logits");
  EXPECT_EQ(found["batch"], 2);
  EXPECT_EQ(found["multiply_adds"], 2 * 5 * 6 * 3);
  EXPECT_TRUE(found.contains("arena_bytes"));
  EXPECT_THAT(run_graft({"inspect", file, "--output", "scores"}),
              FailsWith(1, "no output 'scores'; its outputs: 'probabilities', 'logits'"));
  EXPECT_THAT(run_graft({"inspect", file, "--shape", "y=2x5x6"}),
              FailsWith(1, "no input is called 'y'; inputs are: 'x'"));
  EXPECT_THAT(run_graft({"inspect", file, "--shape", "x=2xy"}), FailsWith(1, "is no shape"));
}

/// z = If(c) of x w or x: `c` is the size of an axis that is open, or an input.
std::string write_branches(const std::string& file, bool by_shape) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), Dim("t")}}));
  Expr chosen = by_shape ? call("Shape", {x}, {{"start", 1}, {"end", 2}})
                         : builder.expr(graph.add_input("rate", {DType::i64, SymShape{1}}));
  const Expr condition = equal(chosen, constant_ints(builder, {2}));
  const auto branch = [&](bool multiplies) {
    auto body = std::make_shared<Graph>("branch", &graph);
    const std::string name = multiplies ? "product" : "same";
    std::vector<Value*> inputs{x.value()};
    Graph& home = by_shape ? graph : *body;
    if (multiplies)
      inputs.push_back(home.add_initializer("w", Tensor::full(DType::f32, {2, 2}, 1)));
    Node* const node = body->add_node(multiplies ? "MatMul" : "Identity", "", inputs, {name});
    node->output()->set_type({DType::f32, SymShape{Dim("N"), Dim("t")}});
    body->add_output(node->output());
    return body;
  };
  Value* const z = graph
                       .add_node("If", "", {condition.value()}, {"z"},
                                 {{"then_branch", AttributeValue(branch(true))},
                                  {"else_branch", AttributeValue(branch(false))}})
                       ->output();
  z->set_type({DType::f32, SymShape{Dim("N"), Dim("t")}});
  graph.add_output(z);
  onnx::save(model, file);
  return file;
}

TEST_F(Inspect, SaysWhatToGiveBeforeItCanBeTold) {
  const std::string by_shape = write_branches(path("shape.onnx"), true);
  const Outcome open = run_graft({"inspect", by_shape});
  EXPECT_EQ(open.code, 2);
  EXPECT_THAT(open.error, HasSubstr("whether this model trains depends on the shapes of its "
                                    "inputs: say them by --shape x=NxT\n"));
  EXPECT_THAT(run_graft({"inspect", by_shape, "--shape", "x=4x2"}), Succeeds());
  const Outcome chosen = run_graft({"inspect", write_branches(path("rate.onnx"), false)});
  EXPECT_EQ(chosen.code, 2);
  EXPECT_THAT(chosen.error, HasSubstr("branches between which input 'rate' chooses: make it a "
                                      "constant by edit MODEL --set rate=VALUE --out OUT\n"));
}

/// The input leaves the batch open, a Reshape fixes it to 2.
TEST_F(Inspect, SaysThatOnlyACopyRunsTheBatch) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2, 3}}));
  const Expr w = builder.expr(graph.add_initializer("w", Tensor::full(DType::f32, {6, 4}, 0.5)));
  const Expr flat = call("Reshape", {x, constant_ints(builder, {2, 6})});
  graph.add_output(matmul(flat, w).value());
  onnx::save(model, path("fixed.onnx"));
  const std::string remedy = "remedy: edit MODEL --batch any --out OUT";
  const Outcome other = run_graft({"inspect", path("fixed.onnx"), "--batch", "8"});
  EXPECT_THAT(other.out, AllOf(HasSubstr("the file as it is runs no batch of 8 ("),
                               HasSubstr(remedy), HasSubstr("for a batch of 8")));
  EXPECT_THAT(run_graft({"inspect", path("fixed.onnx"), "--batch", "2"}).out,
              Not(HasSubstr("runs no batch")));
}

TEST_F(Inspect, TabulatesLayers) {
  const Outcome outcome =
      run_graft({"inspect", write_two_ends(path("ends.onnx"), SymShape{4, 6}), "--layers"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out,
              HasSubstr("value          op       shape     parameters  multiply-adds  bytes\n"
                        "logits         MatMul   f32[4,3]          18             72     48\n"));
  EXPECT_THAT(run_graft({"inspect", path("ends.onnx"), "--layers", "--json"}),
              FailsWith(1, "--layers excludes --json"));
}

}  // namespace
}  // namespace graft::testing
