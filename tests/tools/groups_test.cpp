// Parameters with settings of their own, averages and losses that name outputs, as commands.
#include <gmock/gmock.h>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/ops/builder.h"
#include "io/npz.h"
#include "io/onnx.h"
#include "io/safetensors.h"
#include "tests/tools/tool_test.h"
#include "tests/train/nets.h"

namespace graft {
namespace {

using testing::FailsWith;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::run_graft;
using testing::Succeeds;

class Groups : public testing::ToolTest {
 protected:
  Outcome train(const std::vector<std::string>& more, const std::string& model,
                const std::string& data) const {
    std::vector<std::string> arguments{"train",   model,     "--data", data,       "--out",
                                       path("o"), "--batch", "16",     "--epochs", "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_graft(arguments);
  }
  Outcome train(const std::vector<std::string>& more) const { return train(more, mlp_, mnist_); }

  std::string mlp_ = write_mlp();
  std::string mnist_ = write_mnist();
};

TEST_F(Groups, AreShownByADryRun) {
  const Outcome shown = train({"--dry-run", "--optimizer", "adamw", "--lr", "1e-3", "--lr",
                               "fc3.*=1e-2", "--wd", ".*bias=0", "--unfreeze", "fc1.*=2",
                               "--schedule", "fc3.*=constant", "--ema", "0.999"});
  ASSERT_THAT(shown, Succeeds());
  EXPECT_THAT(shown.out, HasSubstr("learning rate 0.01, weight decay 0, constant:  fc3.bias 10"));
  EXPECT_THAT(
      shown.out,
      HasSubstr("learning rate 0.001, weight decay 0.01, frozen for 4 updates:  fc1.weight"));
  EXPECT_THAT(shown.out, HasSubstr("of the weights, decay 0.999"));
}

TEST_F(Groups, LayerDecayGivesEachLayerItsRate) {
  const Outcome shown =
      train({"--dry-run", "--json", "--optimizer", "sgd", "--lr", "0.5", "--layer-decay", "0.5"});
  ASSERT_THAT(shown, Succeeds());
  const auto start = nlohmann::json::parse(shown.out.substr(0, shown.out.find('\n')));
  ASSERT_EQ(start["groups"].size(), 3U);
  EXPECT_EQ(start["groups"][0]["learning_rate"], 0.125);
  EXPECT_EQ(start["groups"][2]["parameters"][0], "fc3.weight");
}

TEST_F(Groups, WhatMatchesNothingIsRefused) {
  EXPECT_THAT(train({"--lr", "fc9.*=1"}),
              FailsWith(1,
                        "parameter group 'fc9.*' matches none of the 6 parameters that train: "
                        "fc1.weight, fc1.bias, "));
  EXPECT_THAT(train({"--unfreeze", "fc1.*=4"}), FailsWith(1, "wanted an epoch of the run, 1 to 3"));
  EXPECT_THAT(train({"--unfreeze", "fc1.*"}), FailsWith(1, "wanted PATTERN=EPOCH"));
  EXPECT_THAT(train({"--lr", "0.1", "--lr", "0.2"}), FailsWith(1, "is 0.1 and 0.2"));
  EXPECT_THAT(train({"--lr", "fc1.*=fast"}), FailsWith(1, "'fast', wanted a number"));
}

/// The same command goes on with the run that it began.
TEST_F(Groups, AreRecordedAndResumed) {
  const std::string run = path("run");
  const std::vector<std::string> settings{"--run",      run,       "--lr",  "fc3.*=1e-2",
                                          "--unfreeze", "fc1.*=2", "--ema", "0.9"};
  ASSERT_THAT(train(settings), Succeeds());
  const auto config = nlohmann::json::parse(std::ifstream(run + "/config.json"));
  EXPECT_EQ(config["settings"]["lr"], nlohmann::json::parse(R"([0.05, "fc3.*=1e-2"])"));
  EXPECT_EQ(config["settings"]["unfreeze"], "fc1.*=2");
  std::vector<std::string> more = settings;
  more.insert(more.end(), {"--resume", "auto"});
  EXPECT_THAT(train(more), Succeeds());
  more[3] = "fc3.*=2e-2";
  EXPECT_THAT(train(more), FailsWith(1, "--lr fc3.*=2e-2 (the run has 0.05,fc3.*=1e-2)"));
}

TEST_F(Groups, WhatAPatternLeavesOpenIsTheRunsOwn) {
  const std::string run = path("run");
  ASSERT_THAT(train({"--run", run, "--lr", "0.2", "--lr", "fc3.*=1e-2"}), Succeeds());
  const Outcome shown = train({"--resume", run, "--lr", "fc3.*=1e-2", "--dry-run", "--json"});
  ASSERT_THAT(shown, Succeeds());
  const auto start = nlohmann::json::parse(shown.out.substr(0, shown.out.find('\n')));
  ASSERT_EQ(start["groups"].size(), 2U);
  EXPECT_EQ(start["groups"][0]["learning_rate"], 0.2);
  EXPECT_EQ(start["groups"][1]["learning_rate"], 0.01);
}

TEST_F(Groups, AveragesAreWrittenAndBothAreStored) {
  const std::string run = path("run");
  ASSERT_THAT(train({"--run", run, "--ema", "0.9"}), Succeeds());
  const safetensors::Content stored = safetensors::load(run + "/last.safetensors");
  const auto tensor = [&](const std::string& name) {
    return std::ranges::find(stored.tensors, name, &NamedTensor::name)->tensor;
  };
  const Model written = onnx::load(path("o"));
  const Tensor& bias = written.graph().find("fc1.bias")->initializer();
  EXPECT_TRUE(equal_bits(bias, tensor("optimizer/fc1.bias.average")));
  EXPECT_FALSE(equal_bits(bias, tensor("weights/fc1.bias")));
}

/// A model of two outputs and its data, as files.
class TwoOutputs : public Groups {
 protected:
  TwoOutputs() {
    onnx::save(test::two_outputs(), path("two.onnx"));
    const std::vector<NamedTensor> arrays{{"x", test::random_tensor({32, 2}, 1)},
                                          {"target_y", test::cyclic_labels(32, 2)},
                                          {"target_z", test::random_tensor({32, 1}, 2)}};
    npz::save(path("two.npz"), arrays);
  }
  Outcome train_two(const std::vector<std::string>& more) const {
    return train(more, path("two.onnx"), "npz:" + path("two.npz"));
  }
};

TEST_F(TwoOutputs, TrainTogether) {
  const Outcome trained = train_two({"--loss", "y=cross_entropy+z=0.5*mse"});
  ASSERT_THAT(trained, Succeeds());
  EXPECT_THAT(trained.out, HasSubstr("y=cross_entropy+z=0.5*mse"));
  EXPECT_THAT(trained.out, HasSubstr("accuracy"));
  EXPECT_THAT(train_two({}), FailsWith(1, "the data have 2 targets, the loss takes one"));
  EXPECT_THAT(train_two({"--loss", "y=mse+z"}), FailsWith(1, "wanted OUTPUT=LOSS"));
}

TEST_F(TwoOutputs, ALossOfTheModelIsTaken) {
  Model model = onnx::load(path("two.onnx"));
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr z = builder.expr(graph.find("z"));
  const Expr truth = builder.expr(graph.add_input("truth", {DType::f32, SymShape{Dim("N"), 1}}));
  Value* const loss = reduce_mean((z - truth) * (z - truth), {}, false).value();
  graph.rename(loss, "loss");
  graph.add_output(loss);
  onnx::save(model, path("lossy.onnx"));
  const std::vector<NamedTensor> arrays{{"x", test::random_tensor({32, 2}, 1)},
                                        {"target", test::random_tensor({32, 1}, 2)}};
  npz::save(path("one.npz"), arrays);
  const auto loss_of = [&](const std::string& file, const std::string& name) {
    const Outcome shown = run_graft(
        {"eval", path(file), "--data", "npz:" + path("one.npz"), "--json", "--loss", name});
    EXPECT_THAT(shown, Succeeds());
    return nlohmann::json::parse(shown.out)["loss"].get<double>();
  };
  EXPECT_NEAR(loss_of("lossy.onnx", "graph:loss"), loss_of("two.onnx", "z=mse"), 1e-6);
  ASSERT_THAT(train({"--loss", "graph:loss"}, path("lossy.onnx"), "npz:" + path("one.npz")),
              Succeeds());
  EXPECT_THAT(train({"--loss", "graph:lost"}, path("lossy.onnx"), "npz:" + path("one.npz")),
              FailsWith(1, "the model has no output 'lost'; its outputs: y, z, loss"));
}

}  // namespace
}  // namespace graft
