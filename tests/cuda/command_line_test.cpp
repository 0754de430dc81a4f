// What people run, on the card: a net is trained, evaluated, run, trained on, cut, extended and
// trained again; and the examples. No op may fall back to the CPU.
#include <gmock/gmock.h>
#include <cstdlib>

#include "io/npy.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

constexpr const char* kCard = "cuda:emulated";

class CommandLineOnCard : public ToolTest {
 protected:
  /// On the card; `arguments` name the verb and the rest. Says on stderr which ops fell back.
  Outcome on_card(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--device", kCard});
    return run_graft(std::move(arguments));
  }
  Outcome train(const std::string& from, const std::string& to) const {
    return on_card({"train", path(from), "--data", data_, "--epochs", "2", "--lr", "0.05",
                    "--batch", "16", "--seed", "1", "--out", path(to)});
  }
  /// The loss and the accuracy of a file.
  nlohmann::json evaluated(const std::string& file, const std::string& on) const {
    const Outcome outcome =
        run_graft({"eval", path(file), "--data", data_, "--device", on, "--json"});
    EXPECT_THAT(outcome, Succeeds());
    return json_lines(outcome).back();
  }

  std::string data_ = write_mnist(64, 12);
};

TEST_F(CommandLineOnCard, ANetIsTrainedEvaluatedAndEdited) {
  ASSERT_THAT(run_graft({"new", "lenet", "--input", "1x16x16", "--out", path("new.onnx")}),
              Succeeds());
  data_ = write_mnist(64, 16);
  const Outcome trained = train("new.onnx", "trained.onnx");
  ASSERT_THAT(trained, Succeeds());
  EXPECT_THAT(trained.error, Not(HasSubstr("runs on the CPU")));
  ASSERT_THAT(train("new.onnx", "again.onnx"), Succeeds());
  EXPECT_EQ(read("again.onnx"), read("trained.onnx")) << "two runs, equal bits";

  const nlohmann::json here = evaluated("trained.onnx", "cpu");
  const nlohmann::json there = evaluated("trained.onnx", kCard);
  EXPECT_NEAR(there.at("loss").get<double>(), here.at("loss").get<double>(), 1e-4);
  EXPECT_EQ(there.at("accuracy"), here.at("accuracy"));
  EXPECT_LT(here.at("loss").get<double>(), evaluated("new.onnx", "cpu").at("loss").get<double>());
  npy::save(path("x.npy"), Tensor::full(DType::f32, {2, 1, 16, 16}, 0.5));
  EXPECT_THAT(on_card({"run", path("trained.onnx"), "--input", "input=" + path("x.npy"), "--out",
                       path("results")}),
              Succeeds());

  ASSERT_THAT(
      run_graft({"edit", path("trained.onnx"), "--truncate", "fc1", "--out", path("cut.onnx")}),
      Succeeds());
  ASSERT_THAT(run_graft({"edit", path("cut.onnx"), "--append", "relu,linear:10:name=head", "--out",
                         path("grown.onnx")}),
              Succeeds());
  const Outcome grown = train("grown.onnx", "grown_trained.onnx");
  ASSERT_THAT(grown, Succeeds());
  EXPECT_THAT(grown.error, Not(HasSubstr("runs on the CPU")));
  EXPECT_LT(evaluated("grown_trained.onnx", kCard).at("loss").get<double>(),
            evaluated("grown.onnx", kCard).at("loss").get<double>());
}

/// Examples take the device from the environment.
class ExamplesOnCard : public ToolTest {
 protected:
  void SetUp() override {
    if (example("mnist").empty()) GTEST_SKIP() << "the examples were not built";
    setenv("GRAFT_DEVICE", kCard, 1);
  }
  void TearDown() override { unsetenv("GRAFT_DEVICE"); }
  std::string write_lenet() const {
    EXPECT_THAT(run_graft({"new", "lenet", "--out", path("lenet.onnx")}), Succeeds());
    return path("lenet.onnx");
  }
  static void expect_on_card(const Outcome& outcome) {
    ASSERT_THAT(outcome, Succeeds());
    EXPECT_THAT(outcome.error, Not(HasSubstr("runs on the CPU")));
  }

  std::string data_ = write_mnist(20, 28);
};

TEST_F(ExamplesOnCard, Mnist) {
  expect_on_card(run({example("mnist"), data_, path("out.onnx"), "20"}));
  setenv("GRAFT_DEVICE", "cuda:none", 1);
  EXPECT_THAT(run({example("mnist"), data_, path("out.onnx"), "20"}).error,
              HasSubstr("unknown device 'cuda:none'"));
}

TEST_F(ExamplesOnCard, Cifar) {
  std::string records;
  for (int i = 0; i < 10; ++i) {
    records += static_cast<char>(i);
    for (int pixel = 0; pixel < 3072; ++pixel) records += static_cast<char>(i * pixel % 251);
  }
  folder_.write("data_batch_1.bin", records);
  folder_.write("test_batch.bin", records);
  expect_on_card(run({example("cifar"), folder_.path().string(), path("out.onnx"), "1", "2"}));
}

TEST_F(ExamplesOnCard, Finetune) {
  expect_on_card(run({example("finetune"), write_lenet(), path("out.onnx"), data_, "20"}));
}

TEST_F(ExamplesOnCard, Transfer) {
  expect_on_card(run({example("transfer"), write_lenet(), "pool2", path("out.onnx"), data_, "20"}));
}

}  // namespace
}  // namespace graft::testing
