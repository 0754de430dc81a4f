#include <gmock/gmock.h>
#include <signal.h>

#include "io/npz.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

class Train : public ToolTest {
 protected:
  Outcome train(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"train", model_,    "--data",  data_,
                                       "--out", path(out), "--batch", "16"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_graft(arguments);
  }

  std::string model_ = write_mlp();
  std::string data_ = write_mnist();
};

TEST_F(Train, LearnsAndEvalAgrees) {
  const Outcome trained = train("out.onnx", {"--epochs", "12", "--json"});
  ASSERT_THAT(trained, Succeeds());
  const auto lines = json_lines(trained);
  ASSERT_EQ(lines.size(), 15U);
  EXPECT_EQ(lines.front()["event"], "start");
  EXPECT_EQ(lines.front()["loss_name"], "cross_entropy");
  EXPECT_EQ(lines.front()["parameters"], 144 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(lines.back()["event"], "end");
  EXPECT_EQ(lines.back()["updates"], 48);
  EXPECT_EQ(lines[1]["event"], "validation") << "before the first step";
  const nlohmann::json& last = lines[13];
  EXPECT_EQ(last["epoch"], 12);
  EXPECT_LT(last["loss"], lines[2]["loss"]);
  EXPECT_EQ(last["validation_accuracy"], 1.0);

  const Outcome evaluated = run_graft({"eval", path("out.onnx"), "--data", data_, "--json"});
  ASSERT_THAT(evaluated, Succeeds());
  const nlohmann::json measured = nlohmann::json::parse(evaluated.out);
  EXPECT_EQ(measured["accuracy"], 1.0);
  EXPECT_EQ(measured["samples"], 64);
  EXPECT_NEAR(measured["loss"], last["validation_loss"], 1e-5);
}

TEST_F(Train, SaysWhatTrainsAndKeepsTheRest) {
  const Outcome trained =
      train("out.onnx", {"--epochs", "1", "--trainable", "fc[12].*", "--freeze", ".*bias"});
  ASSERT_THAT(trained, Succeeds());
  EXPECT_THAT(trained.out, HasSubstr("in 2 parameters:  fc1.weight 36,864  fc2.weight 32,768"));
  const Model before = onnx::load(model_);
  const Model after = onnx::load(path("out.onnx"));
  for (const Value* value : before.graph().initializers()) {
    const bool is_trained = value->name() == "fc1.weight" || value->name() == "fc2.weight";
    const Tensor now = after.graph().find(value->name())->initializer();
    EXPECT_EQ(equal_bits(value->initializer(), now), !is_trained) << value->name();
  }
}

TEST_F(Train, FollowersOfATieTrainWithTheirLeader) {
  Model model = onnx::load(model_);
  Graph& graph = model.graph();
  const ValueType type = graph.outputs().front()->type();
  for (const char* name : {"leader", "follower"}) {
    Value* const bias = graph.add_initializer(name, Tensor::zeros(DType::f32, {10}));
    Node* const add =
        graph.add_node("Add", "", {graph.outputs().front(), bias}, {text("plus_", name)});
    add->output()->set_type(type);
    graph.set_outputs({add->output()});
  }
  model_ = path("tied.onnx");
  onnx::save(model, model_);
  const auto start = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--epochs", "1", "--limit", "16", "--json"});
    more.insert(more.end(), {"--tied", "leader,follower"});
    return json_lines(train("out.onnx", more)).at(0);
  };
  const nlohmann::json none = nlohmann::json::array();
  EXPECT_EQ(start({})["frozen"], none) << "the follower follows";
  EXPECT_EQ(start({"--freeze", "leader"})["frozen"], nlohmann::json({"leader", "follower"}));
}

TEST_F(Train, SameSeedSameBytes) {
  for (const char* out : {"a.onnx", "b.onnx"}) {
    ASSERT_THAT(train(out, {"--epochs", "2", "--seed", "5", "--threads", "2"}), Succeeds());
  }
  ASSERT_THAT(train("c.onnx", {"--epochs", "2", "--seed", "6", "--threads", "2"}), Succeeds());
  EXPECT_EQ(read("a.onnx"), read("b.onnx"));
  EXPECT_NE(read("a.onnx"), read("c.onnx"));
}

TEST_F(Train, TakesEverySetting) {
  const std::vector<std::vector<std::string>> settings{
      {"--optimizer", "sgd", "--nesterov", "--weight-decay", "1e-4", "--schedule", "one-cycle"},
      {"--optimizer", "adam", "--schedule", "cosine", "--warmup", "2"},
      {"--optimizer", "adamw", "--schedule", "step", "--every", "3", "--gamma", "0.5"},
      {"--optimizer", "rmsprop", "--lr", "1e-4", "--schedule", "exponential"},
      {"--optimizer", "adagrad", "--label-smoothing", "0.1", "--accumulate", "2"},
      {"--clip-norm", "1", "--clip-value", "0.1", "--normalize", "data"},
      {"--augment", "--limit", "20", "--device", "cpu", "--normalize", "0.1:0.3"},
  };
  for (const auto& setting : settings) {
    std::vector<std::string> arguments = setting;
    arguments.insert(arguments.end(), {"--epochs", "1", "--json"});
    const Outcome trained = train("out.onnx", arguments);
    EXPECT_THAT(trained, Succeeds()) << ::testing::PrintToString(setting);
  }
}

TEST_F(Train, LimitAndValidation) {
  const auto lines = json_lines(
      train("out.onnx", {"--epochs", "1", "--limit", "20", "--validate", "none", "--json"}));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1]["samples"], 20);
  EXPECT_FALSE(lines[1].contains("validation_loss"));
}

TEST_F(Train, NumbersFromAnNpzFile) {
  std::vector<float> x;
  std::vector<float> y;
  for (int i = 0; i < 32; ++i) {
    const float value = static_cast<float>(i) / 16.0F - 1.0F;
    x.insert(x.end(), {value, 1.0F - value});
    y.push_back(0.5F * value);
  }
  npz::save(path("line.npz"), std::vector<NamedTensor>{{"x", Tensor::from({32, 2}, x)},
                                                       {"y", Tensor::from({32, 1}, y)}});
  ASSERT_THAT(run_graft({"new", "mlp", "--input", "2", "--classes", "1", "--out", path("m.onnx")}),
              Succeeds());
  model_ = path("m.onnx");
  data_ = "npz:" + path("line.npz");
  const Outcome trained = train("out.onnx", {"--epochs", "20", "--json"});
  ASSERT_THAT(trained, Succeeds());
  const auto lines = json_lines(trained);
  EXPECT_EQ(lines.front()["loss_name"], "mse");
  EXPECT_FALSE(lines[1].contains("accuracy"));
  EXPECT_LT(lines[20]["loss"], 0.1 * lines[1]["loss"].get<double>());
}

class TrainOnCsv : public Train {
 protected:
  /// `last`: of the last of four lines.
  std::string write_csv(const std::string& name, const std::string& last) const {
    return "csv:" + folder_.write(name, "1,0\n2,2\n3,1\n4," + last + "\n").string();
  }
  void take_mlp(const std::string& outputs) {
    ASSERT_THAT(
        run_graft({"new", "mlp", "--input", "1", "--classes", outputs, "--out", path("m.onnx")}),
        Succeeds());
    model_ = path("m.onnx");
    data_ = write_csv("whole.csv", "2");
  }
  std::string loss(std::vector<std::string> more) const {
    more.insert(more.end(), {"--epochs", "1", "--json"});
    const Outcome outcome = train("out.onnx", more);
    EXPECT_THAT(outcome, Succeeds());
    return json_lines(outcome).front()["loss_name"].get<std::string>();
  }
};

TEST_F(TrainOnCsv, TheLossSaysWhatWholeNumbersAre) {
  take_mlp("3");
  EXPECT_EQ(loss({}), "cross_entropy");
  EXPECT_EQ(loss({"--loss", "nll"}), "nll");
  data_ = write_csv("points.csv", "2.5");
  EXPECT_THAT(train("out.onnx", {"--loss", "cross_entropy"}),
              FailsWith(2, "line 4, column 2: label '2.5' is not a class index"));
  take_mlp("1");
  EXPECT_EQ(loss({}), "mse") << "one column is no choice between classes";
  EXPECT_EQ(loss({"--loss", "huber"}), "huber");
  const Outcome measured = run_graft({"eval", path("out.onnx"), "--data", data_, "--json"});
  ASSERT_THAT(measured, Succeeds());
  EXPECT_EQ(json_lines(measured).front()["loss_name"], "huber");
}

TEST_F(TrainOnCsv, DataToMeasureWithAreOfTheSameKind) {
  take_mlp("1");
  EXPECT_EQ(loss({"--validate", write_csv("points.csv", "2.5")}), "mse");
  const std::string whole = data_;
  data_ = write_csv("points.csv", "2.5");
  EXPECT_EQ(loss({"--validate", whole}), "mse");
  take_mlp("3");
  EXPECT_THAT(train("out.onnx", {"--validate", write_csv("points.csv", "2.5")}),
              FailsWith(2, "label '2.5' is not a class index"));
}

TEST_F(Train, SaysWhichDataDoNotFit) {
  const std::string wrong = "csv:" + folder_.write("wrong.csv", "1,0\n2,1\n").string();
  EXPECT_THAT(train("out.onnx", {"--validate", wrong}),
              FailsWith(2, "the data to measure with, --validate " + wrong + ": "));
}

TEST_F(Train, InputsInAnotherOrderThanTheModelsAreRefused) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  const ValueType rows{DType::f32, SymShape{Dim("N"), 2}};
  Value* const a = graph.add_input("a", rows);
  Value* const b = graph.add_input("b", rows);
  Value* const w = graph.add_initializer("w", Tensor::full(DType::f32, {2, 2}, 0.5));
  Value* const product = graph.add_node("MatMul", "", {a, w}, {"product"})->output();
  Value* const sum = graph.add_node("Add", "", {product, b}, {"sum"})->output();
  sum->set_type(rows);
  graph.add_output(sum);
  model_ = path("two.onnx");
  onnx::save(model, model_);
  const Tensor numbers = Tensor::full(DType::f32, {16, 2}, 0.25);
  data_ = "npz:" + path("two.npz");
  npz::save(path("two.npz"),
            std::vector<NamedTensor>{{"b", numbers}, {"a", numbers}, {"y", numbers}});
  EXPECT_THAT(train("out.onnx"), FailsWith(1, "write them in that order"));
  npz::save(path("two.npz"),
            std::vector<NamedTensor>{{"a", numbers}, {"b", numbers}, {"y", numbers}});
  EXPECT_THAT(train("out.onnx", {"--epochs", "1"}), Succeeds());
  npz::save(path("two.npz"), std::vector<NamedTensor>{{"a", numbers}, {"y", numbers}});
  EXPECT_THAT(train("out.onnx"), FailsWith(2, "the model has 2 inputs ('a', 'b'), the data 1"));
}

TEST_F(Train, AnAccumulationWithoutAnUpdateIsRefused) {
  EXPECT_THAT(train("out.onnx", {"--epochs", "1", "--accumulate", "100"}),
              FailsWith(1, "--accumulate 100 takes more batches than the 4"));
}

TEST_F(Train, InterruptSavesWhatIsThere) {
  Process process = start_graft({"train", model_, "--data", data_, "--out", path("out.onnx"),
                                 "--epochs", "1000000", "--validate", "none"});
  ASSERT_TRUE(process.says("epoch 2/"));
  process.signal(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.error, HasSubstr("interrupted after"));
  const Model before = onnx::load(model_);
  const Model after = onnx::load(path("out.onnx"));
  EXPECT_FALSE(equal_bits(before.graph().find("fc1.weight")->initializer(),
                          after.graph().find("fc1.weight")->initializer()));
}

}  // namespace
}  // namespace graft::testing
