// The examples on a few samples: they run, and write what `graft eval` takes.
#include <gmock/gmock.h>

#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

class Examples : public ToolTest {
 protected:
  void SetUp() override {
    if (example("mnist").empty()) GTEST_SKIP() << "the examples were not built";
  }

  std::string write_lenet() const {
    EXPECT_THAT(run_graft({"new", "lenet", "--out", path("lenet.onnx")}), Succeeds());
    return path("lenet.onnx");
  }

  std::string data_ = write_mnist(200, 28);
};

TEST_F(Examples, Mnist) {
  const Outcome outcome = run({example("mnist"), data_, path("out.onnx"), "200"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("epoch 2: loss "));
  EXPECT_THAT(run_graft({"eval", path("out.onnx"), "--data", data_}), Succeeds());
}

TEST_F(Examples, Cifar) {
  std::string records;
  for (int i = 0; i < 40; ++i) {
    records += static_cast<char>(i % 10);
    for (int pixel = 0; pixel < 3072; ++pixel) records += static_cast<char>(i * pixel % 251);
  }
  folder_.write("data_batch_1.bin", records);
  folder_.write("test_batch.bin", records);
  const Outcome outcome =
      run({example("cifar"), folder_.path().string(), path("out.onnx"), "2", "40"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("epoch 2: loss "));
  EXPECT_THAT(run_graft({"eval", path("out.onnx"), "--data", "cifar10:" + folder_.path().string(),
                         "--normalize", "data"}),
              Succeeds());
}

TEST_F(Examples, Finetune) {
  const Outcome outcome = run({example("finetune"), write_lenet(), path("out.onnx"), data_, "100"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("test accuracy "));
  EXPECT_NE(read("out.onnx"), read("lenet.onnx"));
}

TEST_F(Examples, AdaptersMergeAndTravel) {
  const Outcome outcome =
      run({example("adapters"), write_lenet(), path("a.safetensors"), "fc.*|conv2", data_, "200"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("3 layers, 9440 numbers to train"));
  const auto accuracy = [&](const std::string& before) {
    const std::size_t at = outcome.out.find(before);
    return at == outcome.out.npos ? "none of " + before : outcome.out.substr(at + before.size(), 5);
  };
  EXPECT_EQ(accuracy("merged: "), accuracy("-> "));
  EXPECT_EQ(accuracy("a.safetensors: "), accuracy("-> "));
}

TEST_F(Examples, LongRunGoesOnWhereItWas) {
  const auto run_epochs = [&](const char* epochs) {
    return run(
        {example("long_run"), path("lenet.onnx"), path("out.onnx"), path("run"), epochs, "200"});
  };
  write_lenet();
  const Outcome first = run_epochs("1");
  ASSERT_THAT(first, Succeeds());
  EXPECT_THAT(first.out, HasSubstr("  1  "));
  EXPECT_THAT(first.out, HasSubstr("top5 "));
  const Outcome second = run_epochs("2");
  ASSERT_THAT(second, Succeeds());
  EXPECT_THAT(second.out, StartsWith("  2  "));
  EXPECT_TRUE(std::filesystem::exists(path("out.onnx")));
}

TEST_F(Examples, OvernightLeavesARunThatIsShown) {
  const Outcome outcome =
      run({example("overnight"), write_lenet(), path("out.onnx"), path("run"), "2", "300"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("431080 parameters, "));
  EXPECT_THAT(outcome.out, HasSubstr("\nlearning rate "));
  EXPECT_THAT(outcome.out, HasSubstr("\nepoch 2: loss "));
  EXPECT_THAT(run_graft({"plot", path("run")}).out, HasSubstr("validation_worst_class"));
  const Outcome report = run_graft({"report", path("run")});
  ASSERT_THAT(report, Succeeds());
  EXPECT_EQ(report.error, "");
  EXPECT_THAT(read("run/report.html"), HasSubstr("<h3>Confusion matrix</h3>"));
  const Outcome seen = run_graft(
      {"predict", path("out.onnx"), "--data", "fashion-mnist", "--limit", "3", "--top", "10"});
  EXPECT_THAT(seen.out, HasSubstr("  Sandal "));
}

TEST_F(Examples, ServeRunsOnSeveralThreadsAndTakesOtherWeights) {
  const std::string net = write_lenet();
  ASSERT_THAT(run_graft({"new", "lenet", "--seed", "9", "--out", path("other.onnx")}), Succeeds());
  const Outcome one = run({example("serve"), net, path("other.onnx"), "1"});
  const Outcome same = run({example("serve"), net, net, "3"});
  ASSERT_THAT(same, Succeeds());
  const auto after = [](const Outcome& outcome, const std::string& before) {
    const std::size_t at = outcome.out.find(before);
    return at == outcome.out.npos ? "none of " + before : outcome.out.substr(at + before.size(), 7);
  };
  EXPECT_THAT(same.out, StartsWith("3 runs at a time: "));
  EXPECT_EQ(after(same, "time: "), after(same, "weights: "));
  EXPECT_NE(after(one, "time: "), after(one, "weights: "));
}

TEST_F(Examples, TransferTrainsOnlyTheHead) {
  const Outcome outcome =
      run({example("transfer"), write_lenet(), "pool2", path("out.onnx"), data_, "100"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr(": head.1.weight head.1.bias head.2.weight head.2.bias\n"));
  const Model before = onnx::load(path("lenet.onnx"));
  const Model after = onnx::load(path("out.onnx"));
  EXPECT_TRUE(equal_bits(before.graph().find("conv1.weight")->initializer(),
                         after.graph().find("conv1.weight")->initializer()));
  EXPECT_EQ(after.graph().find("fc1.weight"), nullptr);
}

TEST_F(Examples, BoxesLearnsToFindShapes) {
  const Outcome outcome = run({example("boxes"), path("out.onnx"), "3", "48"});
  ASSERT_THAT(outcome, Succeeds());
  const auto loss = [&](const std::string& epoch) {
    const std::string before = "epoch " + epoch + ": loss ";
    const std::size_t at = outcome.out.find(before);
    return at == outcome.out.npos ? 0.0 : std::stod(outcome.out.substr(at + before.size()));
  };
  EXPECT_GT(loss("3"), 0.0);
  EXPECT_LT(loss("3"), loss("1") / 2) << "no box nearly everywhere";
  EXPECT_EQ(onnx::load(path("out.onnx")).graph().outputs().size(), 1U);
}

TEST_F(Examples, OwnLoss) {
  const Outcome outcome = run({example("own_loss"), data_, "200"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("focal loss "));
  EXPECT_THAT(outcome.out, HasSubstr("test accuracy "));
}

TEST_F(Examples, OwnOptimizer) {
  const Outcome outcome = run({example("own_optimizer"), data_, "200"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("test accuracy "));
}

TEST_F(Examples, OwnOpIsInTheFileThatOnlyItsProgramReads) {
  const Outcome outcome = run({example("own_op"), data_, path("out.onnx")});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("accuracy "));
  EXPECT_THAT(run_graft({"eval", path("out.onnx"), "--data", data_}).error,
              HasSubstr("ops not known to Graft: com.example.Snake"));
}

TEST_F(Examples, Quickstart) {
  const Outcome outcome = run({example("quickstart"), path("files"), "300"});
  if (outcome.error.find("fashion-mnist") != std::string::npos) {
    GTEST_SKIP() << "Fashion-MNIST is not installed: " << outcome.error;
  }
  ASSERT_THAT(outcome, Succeeds());
  for (const char* file : {"lenet.onnx", "lenet_retrained.onnx", "lenet_transferred.onnx"}) {
    EXPECT_THAT(outcome.out, HasSubstr(path(std::string("files/") + file)));
    EXPECT_THAT(run_graft({"eval", path(std::string("files/") + file), "--data", "fashion-mnist",
                           "--limit", "50"}),
                Succeeds());
  }
}

}  // namespace
}  // namespace graft::testing
