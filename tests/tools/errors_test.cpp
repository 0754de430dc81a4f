// What the command line says, and returns, when something is wrong.
#include <gmock/gmock.h>

#include "core/device/mpi_communicator.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

class Errors : public ToolTest {
 protected:
  Outcome train(const std::string& model, const std::string& data,
                std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"train",    model,       "--data",     data,
                                       "--out",    path("out"), "--batch",    "16",
                                       "--epochs", "3",         "--validate", "none"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_graft(arguments);
  }
};

/// A length-delimited field of a protobuf message.
std::string field(int number, const std::string& content) {
  EXPECT_LT(content.size(), 128U * 128U);
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  if (content.size() >= 128) bytes += static_cast<char>(content.size() % 128 + 128);
  bytes += static_cast<char>(content.size() >= 128 ? content.size() / 128 : content.size());
  return bytes + content;
}

std::string varint_field(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

std::string relu_node(const std::string& input, const std::string& output) {
  return field(1,
               field(1, input) + field(2, output) + field(3, output + "_node") + field(4, "Relu"));
}

std::string float_value(int number, const std::string& name) {
  return field(number, field(1, name) + field(2, field(1, varint_field(1, 1))));
}

TEST_F(Errors, MissingModel) {
  EXPECT_THAT(run_graft({"inspect", path("none.onnx")}), FailsWith(2, "none.onnx"));
}

TEST_F(Errors, TruncatedModel) {
  const std::string whole = (write_mlp(), read("mlp.onnx"));
  folder_.write("cut.onnx", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(run_graft({"inspect", path("cut.onnx")}), FailsWith(2, "graft: "));
}

TEST_F(Errors, Cycle) {
  const std::string graph = relu_node("b", "a") + relu_node("a", "b") + field(2, "g") +
                            float_value(11, "x") + float_value(12, "b");
  folder_.write("cycle.onnx", varint_field(1, 8) + field(7, graph) + field(8, varint_field(2, 17)));
  EXPECT_THAT(run_graft({"inspect", path("cycle.onnx")}), FailsWith(2, "cycle"));
}

/// An op between the model's output and what was it; keeps the type.
void append(Model& model, const std::string& op, const std::string& domain,
            const std::string& name) {
  Graph& graph = model.graph();
  Node* const node = graph.add_node(op, domain, {graph.outputs().front()}, {name + "_out"});
  node->set_name(name);
  node->output()->set_type(graph.outputs().front()->type());
  graph.set_outputs({node->output()});
}

TEST_F(Errors, UnknownOpsAreNamedWithTheirNodes) {
  Model model = onnx::load(write_mlp());
  model.set_opset("com.example", 1);
  append(model, "Frobnicate", "com.example", "first");
  append(model, "Defrobnicate", "com.example", "second");
  onnx::save(model, path("unknown.onnx"));
  const Outcome trained = train(path("unknown.onnx"), write_mnist());
  EXPECT_THAT(trained, FailsWith(2, "Frobnicate"));
  EXPECT_THAT(trained.error, HasSubstr("'first'"));
  EXPECT_THAT(trained.error, HasSubstr("com.example.Defrobnicate"));
  EXPECT_THAT(trained.error, HasSubstr("'second'"));
  EXPECT_FALSE(std::filesystem::exists(path("out")));

  const Outcome inspected = run_graft({"inspect", path("unknown.onnx")});
  EXPECT_THAT(inspected, FailsWith(2, "nothing in this model can train"));
  EXPECT_THAT(inspected.out, HasSubstr("'first': the op is not known to Graft"));
  EXPECT_THAT(inspected.out, HasSubstr("'second': the op is not known to Graft"));
}

/// All at once, and before the first step.
TEST_F(Errors, OpsWithoutGradientAreNamedWithTheirReasons) {
  Model model = onnx::load(write_mlp());
  append(model, "Hardmax", "", "first");
  append(model, "Hardmax", "", "second");
  onnx::save(model, path("stops.onnx"));
  const std::string reason = "it is constant wherever its derivative exists";
  const Outcome trained = train(path("stops.onnx"), write_mnist());
  EXPECT_EQ(trained.code, 2);
  EXPECT_THAT(trained.error, HasSubstr("gradients cannot pass through 2 nodes:"));
  EXPECT_THAT(trained.error, HasSubstr("Hardmax node 'first': " + reason));
  EXPECT_THAT(trained.error, HasSubstr("Hardmax node 'second': " + reason));
  EXPECT_THAT(trained.error, Not(HasSubstr("epoch")));
  EXPECT_FALSE(std::filesystem::exists(path("out")));

  const Outcome inspected = run_graft({"inspect", path("stops.onnx")});
  EXPECT_THAT(inspected, FailsWith(2, "nothing in this model can train"));
  EXPECT_THAT(inspected.out, HasSubstr("2 nodes stop gradients"));
  EXPECT_THAT(inspected.out, HasSubstr("Hardmax node 'second': " + reason));
}

TEST_F(Errors, DataOfAnotherShape) {
  EXPECT_THAT(train(write_mlp(11), write_mnist(64, 12)), FailsWith(2, "f32[16,1,12,12]"));
}

TEST_F(Errors, FixedBatchComesWithTheRemedy) {
  const std::string model = write_mlp();
  const auto fix = [&](const std::string& batch) {
    ASSERT_THAT(run_graft({"edit", model, "--batch", batch, "--out", path("fixed.onnx")}),
                Succeeds());
  };
  fix("8");
  EXPECT_THAT(train(path("fixed.onnx"), write_mnist()), FailsWith(2, "graft edit --batch any"));
  fix("16");
  EXPECT_THAT(train(path("fixed.onnx"), write_mnist(64)), Succeeds());
  EXPECT_THAT(train(path("fixed.onnx"), write_mnist(60)),
              FailsWith(2, "the batches have 16 and 12 samples"));
}

TEST_F(Errors, OutputThatCannotBePrintedIsNoSuccess) {
  const Outcome outcome =
      run({"/bin/sh", "-c", std::string(GRAFT_BINARY) + " devices > /dev/full"});
  EXPECT_THAT(outcome, FailsWith(2, "standard output"));
}

TEST_F(Errors, LabelsOutOfTheModelsRange) {
  const Outcome trained = train(write_mlp(12, 5), write_mnist());
  EXPECT_THAT(trained, FailsWith(2, "tells only 5 classes apart"));
}

TEST_F(Errors, LabelsOutOfTheDataSetsRange) {
  EXPECT_THAT(train(write_mlp(12, 12), write_mnist(24, 12, 12)), FailsWith(2, "label"));
}

TEST_F(Errors, DamagedIdx) {
  const std::string spec = write_mnist();
  const std::string whole = read("train-images-idx3-ubyte");
  folder_.write("train-images-idx3-ubyte", whole.substr(0, whole.size() - 1));
  EXPECT_THAT(train(write_mlp(), spec), FailsWith(2, "train-images-idx3-ubyte"));
}

TEST_F(Errors, DamagedCifar) {
  folder_.write("data_batch_1.bin", std::string(3072, '\0'));
  EXPECT_THAT(train(write_mlp(), "cifar10:" + folder_.path().string()),
              FailsWith(2, "data_batch_1.bin"));
}

TEST_F(Errors, OutputThatCannotBeWrittenStopsBeforeTraining) {
  const std::string model = write_mlp();
  const std::string data = write_mnist();
  const Outcome trained = run_graft({"train", model, "--data", data, "--out", path("no/out.onnx")});
  EXPECT_THAT(trained, FailsWith(2, "out.onnx"));
  EXPECT_EQ(trained.out, "");
  EXPECT_THAT(run_graft({"train", model, "--data", data, "--out", folder_.path().string()}),
              FailsWith(2, "graft: io: "));
}

TEST_F(Errors, TrainablePatternWithoutMatch) {
  const std::string model = write_mlp();
  const Outcome trained = train(model, write_mnist(), {"--trainable", "head.*"});
  EXPECT_THAT(trained, FailsWith(1, "'head.*' matches none"));
  EXPECT_THAT(trained.error, HasSubstr("fc1.weight"));
  EXPECT_THAT(train(model, write_mnist(), {"--freeze", "head.*"}),
              FailsWith(1, "'head.*' matches none"));
  EXPECT_THAT(train(model, write_mnist(), {"--trainable", "("}),
              FailsWith(1, "no regular expression"));
}

TEST_F(Errors, UnknownDeviceListsTheValidOnes) {
  EXPECT_THAT(train(write_mlp(), write_mnist(), {"--device", "abacus"}), FailsWith(1, "cpu"));
  EXPECT_THAT(train(write_mlp(), write_mnist(), {"--device", "cuda:7"}), FailsWith(1, "cuda"));
  EXPECT_THAT(train(write_mlp(), write_mnist(), {"--fallback", "gpu"}),
              FailsWith(1, "'gpu' is neither none nor cpu"));
}

TEST_F(Errors, UnknownNamesListTheValidOnes) {
  const std::string model = write_mlp();
  const std::string data = write_mnist();
  EXPECT_THAT(train(model, data, {"--loss", "hinge"}), FailsWith(1, "cross_entropy"));
  EXPECT_THAT(train(model, data, {"--optimizer", "lion"}), FailsWith(1, "adamw"));
  EXPECT_THAT(train(model, data, {"--schedule", "linear"}), FailsWith(1, "one-cycle"));
  EXPECT_THAT(train(model, "imagenet:x"), FailsWith(1, "npz:FILE"));
  EXPECT_THAT(run_graft({"new", "alexnet", "--out", path("x")}), FailsWith(1, "resnet20"));
  EXPECT_THAT(run_graft({"edit", model, "--append", "rnn:3", "--out", path("x")}),
              FailsWith(1, "'linear'"));
  EXPECT_THAT(run_graft({"edit", model, "--truncate", "fc9", "--out", path("x")}),
              FailsWith(1, "fc1"));
}

TEST_F(Errors, UnknownFlagsAndVerbsListTheValidOnes) {
  const Outcome flag = run_graft({"train", "m.onnx", "--checkpoint", "x"});
  EXPECT_THAT(flag, FailsWith(1, "unknown argument '--checkpoint'"));
  EXPECT_THAT(flag.error, HasSubstr("--accumulate"));
  EXPECT_THAT(run_graft({"train", "m.onnx", "--epoch", "3"}), FailsWith(1, "'--epochs'?"));
  const Outcome verb = run_graft({"trian"});
  EXPECT_THAT(verb, FailsWith(1, "unknown verb 'trian'"));
  EXPECT_THAT(verb.error, HasSubstr("new, inspect, edit, train"));
}

TEST_F(Errors, WrongUse) {
  EXPECT_THAT(run_graft({}), FailsWith(1, "a verb is required"));
  EXPECT_THAT(run_graft({"train"}), FailsWith(1, "required"));
  EXPECT_THAT(run_graft({"train", "m", "--data", "d", "--out", "o", "--lr", "fast"}),
              FailsWith(1, "--lr"));
  EXPECT_THAT(train(write_mlp(), write_mnist(), {"--optimizer", "adam", "--momentum", "0.9"}),
              FailsWith(1, "momentum"));
  EXPECT_THAT(train(write_mlp(), write_mnist(), {"--lr", "-1"}), FailsWith(1, "lr"));
  EXPECT_THAT(train(write_mlp(), write_mnist(), {"--clip-norm", "0"}), FailsWith(1, "clip"));
  EXPECT_THAT(run_graft({"edit", write_mlp(), "--out", path("x")}), FailsWith(1, "--truncate"));
}

TEST_F(Errors, NumericFailureKeepsTheOlderFile) {
  folder_.write("out", "precious");
  const Outcome trained = train(write_mlp(), write_mnist(), {"--lr", "1e30"});
  EXPECT_THAT(trained, FailsWith(5, "smaller learning rate"));
  EXPECT_EQ(read("out"), "precious");
}

/// As under mpirun, which says so by variables.
TEST_F(Errors, SeveralProcessesWithoutMpi) {
  if (!mpi_library().empty()) GTEST_SKIP() << "this build has " << mpi_library();
  const std::vector<std::string> train{"train",       write_mlp(), "--data",
                                       write_mnist(), "--out",     path("out")};
  EXPECT_THAT(
      run_in_shell("OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0 ", train),
      FailsWith(2, "4 processes were started together, but this build of Graft has no MPI"));
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

TEST_F(Errors, OutOfMemory) {
  const Outcome made =
      run_graft({"new", "mlp", "--input", "1000000000000", "--out", path("big.onnx")});
  EXPECT_EQ(made.code, 3) << made.error;
  EXPECT_FALSE(std::filesystem::exists(path("big.onnx")));
}

TEST_F(Errors, HelpAndVersionAreNoErrors) {
  EXPECT_THAT(run_graft({"--version"}), Succeeds());
  const Outcome help = run_graft({"edit", "--help"});
  EXPECT_THAT(help, Succeeds());
  EXPECT_THAT(help.out, HasSubstr("linear:"));
}

}  // namespace
}  // namespace graft::testing
