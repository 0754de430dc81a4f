// new, inspect, run, edit, bench, ops, export-step and devices.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "io/npy.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

using nlohmann::json;

class Verbs : public ToolTest {
 protected:
  json inspect(const std::string& model, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"inspect", model, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_graft(arguments);
    const json found = json::parse(outcome.out);
    EXPECT_EQ(outcome.code, found["can_train"] ? 0 : 2) << outcome.error;
    return found;
  }
};

TEST_F(Verbs, NewIsTheSameForTheSameSeed) {
  for (const auto& [out, seed] : {std::pair("a", "3"), std::pair("b", "3"), std::pair("c", "4")}) {
    ASSERT_THAT(run_graft({"new", "lenet", "--seed", seed, "--out", path(out)}), Succeeds());
  }
  EXPECT_EQ(read("a"), read("b"));
  EXPECT_NE(read("a"), read("c"));
}

TEST_F(Verbs, InspectCountsALenet) {
  ASSERT_THAT(run_graft({"new", "lenet", "--out", path("lenet.onnx")}), Succeeds());
  const json found = inspect(path("lenet.onnx"), {"--batch", "2"});
  EXPECT_EQ(found["ops"]["Conv"], 2);
  EXPECT_EQ(found["ops"]["Gemm"], 2);
  EXPECT_EQ(found["outputs"][0]["type"], "f32[N,10]");
  // 20*25+20 + 50*500+50 + 500*800+500 + 10*500+10.
  EXPECT_EQ(found["parameters"], 431080);
  EXPECT_EQ(found["trainable"].size(), 8U);
  EXPECT_EQ(found["blockers"].size(), 0U);
  // A sample: 24*24*20*25 + 8*8*50*500 + 800*500 + 500*10.
  EXPECT_EQ(found["multiply_adds"], 2 * 2293000);
  EXPECT_EQ(found["parameter_bytes"], 4 * 431080);
  EXPECT_GT(found["arena_bytes"], 2 * 4 * 24 * 24 * 20)
      << "the first convolution's result is there";
  const json adam = inspect(path("lenet.onnx"), {"--batch", "2", "--optimizer", "adam"});
  EXPECT_LT(adam["arena_bytes"], 4 * 800 * 500)
      << "the largest gradient is made and used piece by piece";
  EXPECT_EQ(found["optimizer_bytes"], 0);
  EXPECT_EQ(inspect(path("lenet.onnx"), {"--optimizer", "adam"})["optimizer_bytes"], 8 * 431080);

  const Outcome as_text = run_graft({"inspect", path("lenet.onnx")});
  EXPECT_THAT(as_text.out, HasSubstr("431,080 numbers in 8 parameters by default"));
  EXPECT_THAT(as_text.out, HasSubstr("every op on the way to 'logits' has a gradient"));
}

TEST_F(Verbs, InspectNamesWhatStopsGradients) {
  Model model = onnx::load(write_mlp());
  Graph& graph = model.graph();
  Node* const cast =
      graph.add_node("Cast", "", {graph.outputs().front()}, {"rounded"}, {{"to", 6}});
  cast->set_name("to_int");
  Node* const back = graph.add_node("Cast", "", {cast->output()}, {"back"}, {{"to", 1}});
  back->output()->set_type(graph.outputs().front()->type());
  graph.set_outputs({back->output()});
  onnx::save(model, path("cast.onnx"));
  const json found = inspect(path("cast.onnx"));
  EXPECT_EQ(
      found["blockers"],
      json::parse(R"(["Cast node 'to_int': its output is i32[1,10], which has no gradient"])"));
  EXPECT_FALSE(found.contains("arena_bytes"));
  EXPECT_FALSE(found["can_train"]);
}

TEST_F(Verbs, RunWritesEachOutput) {
  const std::string model = write_mlp(2, 3);
  npy::save(path("x.npy"), Tensor::from<float>({1, 1, 2, 2}, {1, 2, 3, 4}));
  onnx::save_tensor(path("x.pb"), Tensor::from<float>({1, 1, 2, 2}, {1, 2, 3, 4}), "input");
  for (const char* file : {"x.npy", "x.pb"}) {
    const Outcome outcome = run_graft(
        {"run", model, "--input", "input=" + path(file), "--out", path("results"), "--json"});
    ASSERT_THAT(outcome, Succeeds());
    const json line = json::parse(outcome.out);
    EXPECT_EQ(line["name"], "logits");
    EXPECT_EQ(line["type"], "f32[1,3]");
    EXPECT_EQ(npy::load(line["file"].get<std::string>()).shape(), (Shape{1, 3}));
  }
  EXPECT_THAT(run_graft({"run", model, "--out", path("results")}), FailsWith(1, "'input'"));
  EXPECT_THAT(run_graft({"run", model, "--input", "x", "--out", path("results")}),
              FailsWith(1, "NAME=FILE"));
  EXPECT_THAT(run_graft({"run", model, "--input", "y=" + path("x.npy"), "--out", path("results")}),
              FailsWith(1, "no input 'y'"));
}

TEST_F(Verbs, RunWritesAnyValueInPlaceOfTheOutputs) {
  const std::string model = write_mlp(2, 3);
  npy::save(path("x.npy"), Tensor::from<float>({1, 1, 2, 2}, {1, 2, 3, 4}));
  const auto run_for = [&](const char* output) {
    return run_graft({"run", model, "--input", "input=" + path("x.npy"), "--out", path("results"),
                      "--output", output, "--output", "logits"});
  };
  EXPECT_THAT(run_for("relu2").out,
              ::testing::AllOf(HasSubstr("relu2 f32[1,128] "), HasSubstr("\nlogits f32[1,3] ")));
  EXPECT_THAT(run_for("relu9"), FailsWith(1, "no value or node is named 'relu9'"));
}

TEST_F(Verbs, OneNumberFillsAnInputThatBecomesAConstant) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2, 3}});
  Value* const state = graph.add_input("state", {DType::f32, SymShape{2, 3}});
  graph.add_output(graph.add_node("Add", "", {x, state}, {"y"})->output());
  onnx::save(model, path("model.onnx"));
  ASSERT_THAT(
      run_graft({"edit", path("model.onnx"), "--set", "state=0.5", "--out", path("m.onnx")}),
      Succeeds());
  EXPECT_EQ(onnx::load(path("m.onnx")).graph().inputs().size(), 1U);
  npy::save(path("x.npy"), Tensor::zeros(DType::f32, {2, 3}));
  ASSERT_THAT(
      run_graft({"run", path("m.onnx"), "--input", "x=" + path("x.npy"), "--out", path("results")}),
      Succeeds());
  EXPECT_THAT(npy::load(path("results/y.npy")).values<const float>(), ::testing::Each(0.5F));
}

TEST_F(Verbs, NewListsNetsALineEach) {
  EXPECT_THAT(run_graft({"new", "--help"}).out,
              HasSubstr("\n  bert         classes of a text of --input tokens, BERT-mini\n"));
}

TEST_F(Verbs, EditCutsAppendsAndSetsTheBatch) {
  const Outcome edited =
      run_graft({"edit", write_mlp(), "--truncate", "relu2", "--append", "linear:7:name=head",
                 "--batch", "4", "--out", path("edited.onnx")});
  ASSERT_THAT(edited, Succeeds());
  const json found = inspect(path("edited.onnx"));
  EXPECT_EQ(found["inputs"][0]["type"], "f32[4,1,12,12]");
  EXPECT_EQ(found["outputs"][0]["name"], "head");
  EXPECT_EQ(found["trainable"].back()["name"], "head.bias");
  EXPECT_EQ(found["trainable"].back()["type"], "f32[7]");
  ASSERT_THAT(run_graft({"edit", path("edited.onnx"), "--batch", "any", "--out", path("any.onnx")}),
              Succeeds());
  EXPECT_THAT(inspect(path("any.onnx"))["inputs"][0]["type"].get<std::string>(),
              HasSubstr(",1,12,12]"));
}

TEST_F(Verbs, EditNamesTheTypesOfWhatItCuts) {
  ASSERT_THAT(run_graft({"new", "lenet", "--out", path("lenet.onnx")}), Succeeds());
  const Outcome cut =
      run_graft({"edit", path("lenet.onnx"), "--truncate", "relu3", "--out", path("cut.onnx")});
  ASSERT_THAT(cut, Succeeds());
  EXPECT_THAT(cut.out, HasSubstr("relu3 f32[N,500]"));
  EXPECT_EQ(onnx::load(path("cut.onnx")).graph().outputs().front()->dtype(), DType::f32);
}

TEST_F(Verbs, ABatchThatNoMachineHoldsIsAnErrorOrAFigure) {
  for (const char* net : {"mlp", "lenet", "resnet20"}) {
    ASSERT_THAT(run_graft({"new", net, "--out", path("net.onnx")}), Succeeds());
    const Outcome outcome = run_graft({"inspect", path("net.onnx"), "--batch", "4294967296"});
    EXPECT_TRUE(outcome.code >= 0 && outcome.code <= 5) << net << ": " << outcome.code;
  }
}

/// A sequence 's' of one tensor, and a tensor 's_0'.
TEST_F(Verbs, RunWritesAFileForEachTensor) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2}});
  graph.add_output(graph.add_node("SequenceConstruct", "", {x}, {"s"})->output());
  Node* const sum = graph.add_node("Add", "", {x, x}, {"s_0"});
  sum->output()->set_type({DType::f32, SymShape{2}});
  graph.add_output(sum->output());
  ValueType sequence;
  sequence.is_container = true;
  graph.outputs().front()->set_type(sequence);
  onnx::save(model, path("model.onnx"));
  npy::save(path("x.npy"), Tensor::from<float>({2}, {1, 2}));
  const Outcome outcome = run_graft({"run", path("model.onnx"), "--input", "x=" + path("x.npy"),
                                     "--out", path("results"), "--json"});
  ASSERT_THAT(outcome, Succeeds());
  std::istringstream lines(outcome.out);
  std::set<std::string> files;
  for (std::string line; std::getline(lines, line);) {
    const std::string file = json::parse(line)["file"].get<std::string>();
    if (!file.empty()) files.insert(file);
  }
  EXPECT_EQ(files.size(), 2U) << outcome.out;
}

TEST_F(Verbs, BenchOfInferenceRefusesWhatOnlyTrainingHeeds) {
  const std::string model = write_mlp();
  EXPECT_THAT(run_graft({"bench", model, "--memory", "1M"}),
              FailsWith(1, "--memory requires --train"));
  EXPECT_THAT(run_graft({"bench", model, "--precision", "bf16"}),
              FailsWith(1, "--precision requires --train"));
}

TEST_F(Verbs, BenchMeasuresTrainingOnFiles) {
  const std::string model = write_mlp(2, 3);
  npy::save(path("x.npy"), Tensor::zeros(DType::f32, {5, 1, 2, 2}));
  npy::save(path("t.npy"), Tensor::from<std::int64_t>({5}, {0, 1, 2, 0, 1}));
  const Outcome outcome =
      run_graft({"bench",       model,         "--train",    "--loss",  "cross_entropy",
                 "--optimizer", "sgd",         "--momentum", "0.9",     "--state-precision",
                 "bf16",        "--lr",        "0.01",       "--input", "input=" + path("x.npy"),
                 "--target",    path("t.npy"), "--threads",  "1",       "--seconds",
                 "0.1",         "--json"});
  ASSERT_THAT(outcome, Succeeds());
  const json line = json::parse(outcome.out);
  EXPECT_GE(line["steps"], 5);
  EXPECT_LE(line["step_ms_min"], line["step_ms_median"]);
  EXPECT_GT(line["step_ms_min"], 0.0);
  EXPECT_NEAR(line["first_loss"], 1.1, 0.3) << "about log 3, before the first update";
  EXPECT_GT(line["arena_bytes"], 0);
  constexpr int kParameters = (4 + 1) * 256 + (256 + 1) * 128 + (128 + 1) * 3;
  EXPECT_EQ(line["parameter_bytes"], 4 * kParameters);
  EXPECT_EQ(line["state_bytes"], 2 * kParameters) << "the momentum, in bf16";
  EXPECT_GT(line["rss_after_first_step_bytes"], 1 << 20);
  EXPECT_GT(line["load_ms"], 0.0);
  EXPECT_GT(line["plan_ms"], 0.0);
  EXPECT_GT(line["first_step_ms"], line["load_ms"]) << "counted from the process's start";
  // Forward and twice as much backward, two operations each: layers 4-256-128-3.
  EXPECT_EQ(line["flops_per_step"], 6.0 * 5 * (4 * 256 + 256 * 128 + 128 * 3));
  // Below 1 only where the loop that measures the peak is optimised, and nothing disturbs it.
  EXPECT_GT(line["fma_peak_fraction"], 0.0);
}

TEST_F(Verbs, BenchNamesALossThatIsNotFinite) {
  Model model = onnx::load(write_mlp(2, 3));
  Value* const weight = model.graph().find("fc1.weight");
  weight->set_initializer(Tensor::full(DType::f32, weight->initializer().shape(), NAN));
  onnx::save(model, path("nan.onnx"));
  const Outcome outcome =
      run_graft({"bench", path("nan.onnx"), "--train", "--batch", "2", "--seconds", "0.01"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("\nfirst loss   nan\n"));
}

/// Classes of one output and numbers of another, from files and made up.
TEST_F(Verbs, BenchTakesSeveralTargets) {
  Model model = onnx::load(write_mlp(2, 3));
  const std::string hidden = model.graph().nodes().back()->input(0)->name();
  model.graph().add_output(model.graph().find(hidden));
  const std::string scores = model.graph().outputs()[0]->name();
  onnx::save(model, path("two.onnx"));
  const std::string loss = scores + "=cross_entropy+" + hidden + "=0*mse";
  npy::save(path("x.npy"), Tensor::zeros(DType::f32, {2, 1, 2, 2}));
  npy::save(path("t.npy"), Tensor::from<std::int64_t>({2}, {0, 1}));
  npy::save(path("u.npy"), Tensor::zeros(DType::f32, {2, 128}));
  std::vector<std::string> arguments{"bench",     path("two.onnx"), "--train", "--loss",  loss,
                                     "--seconds", "0.05",           "--json",  "--batch", "2"};
  EXPECT_THAT(run_graft(arguments), Succeeds());
  arguments.resize(8);
  arguments.insert(arguments.end(), {"--input", "input=" + path("x.npy"), "--target", path("t.npy"),
                                     "--target", path("u.npy")});
  const Outcome outcome = run_graft(arguments);
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_NEAR(json::parse(outcome.out)["first_loss"], 1.1, 0.3) << "about log 3";
}

TEST_F(Verbs, BenchMeasuresInferenceOnMadeUpNumbers) {
  const Outcome outcome =
      run_graft({"bench", write_mlp(), "--batch", "3", "--seconds", "0.1", "--json"});
  ASSERT_THAT(outcome, Succeeds());
  const json line = json::parse(outcome.out);
  EXPECT_EQ(line["flops_per_step"], 2.0 * 3 * (144 * 256 + 256 * 128 + 128 * 10));
  EXPECT_GT(line["plan_ms"], 0.0);
  EXPECT_FALSE(line.contains("first_loss"));
  EXPECT_FALSE(line.contains("first_step_ms"));
}

TEST_F(Verbs, TraceCountsTheProductsOfAttentionAndItsGradient) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape(Shape{2, 3, 5})});
  Value* const w = graph.add_initializer("w", Tensor::full(DType::f32, {2, 5, 7}, 0.5));
  Node* const product = graph.add_node("MatMul", "", {x, w}, {"y"});
  product->output()->set_type({DType::f32, SymShape(Shape{2, 3, 7})});
  graph.add_output(product->output());
  onnx::save(model, path("batched.onnx"));
  ASSERT_THAT(run_graft({"bench", path("batched.onnx"), "--train", "--loss", "mse", "--seconds",
                         "0.01", "--trace", path("trace.json")}),
              Succeeds());
  std::map<std::string, double> operations;
  const json trace = json::parse(read("trace.json"));
  for (const json& event : trace["traceEvents"]) {
    operations[event["name"]] += event["args"]["operations"].get<double>();
  }
  EXPECT_EQ(operations["MatMul"], 2.0 * 2 * 3 * 5 * 7);
  EXPECT_EQ(operations["BatchedMatMul"], 2.0 * 2 * 3 * 5 * 7) << "the gradient of w, x transposed";
}

TEST_F(Verbs, ExportStepTakesALossWithItsSettings) {
  const auto export_step = [&](const std::string& loss) {
    return run_graft({"export-step", path("mlp.onnx"), "--loss", loss, "--out", path(loss)});
  };
  write_mlp();
  for (const char* loss : {"cross_entropy", "cross_entropy:label_smoothing=0.1"}) {
    ASSERT_THAT(export_step(loss), Succeeds());
  }
  EXPECT_NE(read("cross_entropy/step.onnx"), read("cross_entropy:label_smoothing=0.1/step.onnx"));
  EXPECT_THAT(export_step("cross_entropy:smoothing=0.1"), FailsWith(1, "label_smoothing"));
}

TEST_F(Verbs, ExportStepRefusesWhatItsLoopsCannotRead) {
  EXPECT_THAT(
      run_graft({"export-step", write_mlp(), "--state-precision", "bf16", "--out", path("step")}),
      FailsWith(2, "leave it out"));
  EXPECT_FALSE(std::filesystem::exists(path("step")));
}

TEST_F(Verbs, DevicesListsTheCpu) {
  const Outcome outcome = run_graft({"devices", "--json"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_EQ(json::parse(outcome.out.substr(0, outcome.out.find('\n')))["name"], "cpu");
}

TEST_F(Verbs, OpsListsWhatASmallBuildLinks) {
  ASSERT_THAT(run_graft({"new", "lenet", "--out", path("lenet.onnx")}), Succeeds());
  const Outcome outcome = run_graft({"ops", path("lenet.onnx"), "--batch", "2"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("file conv_cpu\n"));
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("file update_cpu\n"));
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("\nop Conv 22 takes 2 11? gives 1 1 attributes "));
  EXPECT_THAT(outcome.out, ::testing::Not(::testing::HasSubstr("file gather")));
  const Outcome answers = run_graft({"ops", path("lenet.onnx"), "--inference"});
  EXPECT_THAT(answers.out, ::testing::HasSubstr("file conv_cpu\n"));
  EXPECT_THAT(answers.out, ::testing::Not(::testing::HasSubstr("file update")));
}

}  // namespace
}  // namespace graft::testing
