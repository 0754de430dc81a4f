// Run folders of the command line: settings, resuming, what may go wrong while training.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "io/npz.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

class Runs : public ToolTest {
 protected:
  std::vector<std::string> command(const std::string& out, std::vector<std::string> more) const {
    std::vector<std::string> all{"train", model_,  "--data",  data_,       "--batch",
                                 "16",    "--out", path(out), "--threads", "1"};
    if (std::ranges::find(more, "--epochs") == more.end())
      more.insert(more.end(), {"--epochs", "3"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome train(const std::string& out, std::vector<std::string> more) const {
    return run_graft(command(out, std::move(more)));
  }
  nlohmann::json config() const { return nlohmann::json::parse(read("run/config.json")); }

  /// Lets the process train for at least an epoch, then sends the signal.
  Outcome broken_off(std::vector<std::string> more, int signal) const {
    Process process = start_graft(command("broken.onnx", std::move(more)));
    EXPECT_TRUE(process.says("epoch 1/"));
    process.signal(signal);
    return process.wait();
  }

  std::string model_ = write_mlp();
  std::string data_ = write_mnist();
  std::string folder_of_run_ = path("run");
};

TEST_F(Runs, KeepSettingsThatRepeatTheRunBitForBit) {
  ASSERT_THAT(train("a.onnx", {"--run", folder_of_run_, "--normalize", "data", "--augment",
                               "--accumulate", "2", "--memory", "1024K", "--seed", "5"}),
              Succeeds());
  const nlohmann::json settings = config()["settings"];
  EXPECT_EQ(settings["memory"], 1 << 20);
  EXPECT_EQ(settings["optimizer"], "sgd");
  EXPECT_EQ(settings["lr"], 0.05);
  EXPECT_EQ(settings["augment"], true);
  ASSERT_THAT(run_graft({"train", "--config", path("run/config.json"), "--out", path("b.onnx")}),
              Succeeds());
  EXPECT_EQ(read("a.onnx"), read("b.onnx"));
  EXPECT_THAT(read("run/metrics.jsonl"), HasSubstr(R"("epoch":3,"updates":6,)"));
}

TEST_F(Runs, KeepWhatStandsBehindANameOfAnOptimizerOrALoss) {
  const std::vector<std::string> spelled{"--optimizer", "adam:beta2=0.9",
                                         "--loss",      "cross_entropy:reduction=sum",
                                         "--run",       folder_of_run_};
  ASSERT_THAT(train("a.onnx", spelled), Succeeds());
  EXPECT_EQ(config()["settings"]["optimizer"], "adam:beta2=0.9");
  ASSERT_THAT(run_graft({"train", "--config", path("run/config.json"), "--out", path("b.onnx")}),
              Succeeds());
  EXPECT_EQ(read("a.onnx"), read("b.onnx"));
  std::vector<std::string> again = spelled;
  again.insert(again.end(), {"--resume", "auto"});
  EXPECT_THAT(train("c.onnx", again), Succeeds()) << "the run that it is";
}

TEST_F(Runs, AConfigWithAnUnknownSettingIsRefused) {
  std::ofstream(path("c.json")) << R"({"epoch": 2})";
  EXPECT_THAT(train("a.onnx", {"--config", path("c.json")}),
              FailsWith(1, "unknown setting 'epoch'; did you mean 'epochs'?"));
  std::ofstream(path("d.json")) << "[1";
  EXPECT_THAT(train("a.onnx", {"--config", path("d.json")}), FailsWith(1, "no JSON object"));
}

TEST_F(Runs, ResumeEndsWithTheSameBits) {
  const std::vector<std::string> setting{
      "--augment", "--epochs", "40", "--accumulate", "3", "--seed", "4", "--clip-norm", "1"};
  ASSERT_THAT(train("whole.onnx", setting), Succeeds());
  std::vector<std::string> in_run = setting;
  in_run.insert(in_run.end(), {"--run", folder_of_run_});
  EXPECT_EQ(broken_off(in_run, SIGTERM).code, 4);
  EXPECT_THAT(train("other.onnx", {"--run", folder_of_run_}), FailsWith(1, "go on with it by"));
  EXPECT_THAT(run_graft({"train", "--resume", folder_of_run_, "--lr", "0.5"}),
              FailsWith(1, "--lr 0.5 (the run has 0.05)"));
  ASSERT_THAT(run_graft({"train", "--resume", folder_of_run_}), Succeeds());
  EXPECT_EQ(read("whole.onnx"), read("broken.onnx"));
}

TEST_F(Runs, WhatAResumedRunChangesIsWrittenDown) {
  ASSERT_THAT(train("a.onnx", {"--run", folder_of_run_, "--epochs", "1"}), Succeeds());
  Process process = start_graft(
      {"train", "--resume", folder_of_run_, "--epochs", "1000000", "--out", path("b.onnx")});
  EXPECT_TRUE(process.says("epoch 2/"));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait().code, 4);
  EXPECT_EQ(config()["settings"]["epochs"], 1000000);
  EXPECT_EQ(config()["settings"]["out"], path("b.onnx"));
  EXPECT_EQ(config()["settings"]["batch"], 16);
  std::filesystem::remove(path("b.onnx"));
  Process again = start_graft({"train", "--resume", folder_of_run_});
  EXPECT_TRUE(again.says("/1000000: "));
  again.signal(SIGTERM);
  EXPECT_EQ(again.wait().code, 4);
  EXPECT_TRUE(std::filesystem::exists(path("b.onnx")));
}

TEST_F(Runs, ARunThatHasDoneItsEpochsSaysSo) {
  ASSERT_THAT(train("a.onnx", {"--run", folder_of_run_, "--epochs", "3"}), Succeeds());
  const Outcome same = run_graft({"train", "--resume", folder_of_run_});
  EXPECT_THAT(same, Succeeds());
  EXPECT_THAT(same.error, HasSubstr("warning: 3 epochs are done already, --epochs is 3: nothing is "
                                    "trained; give a larger --epochs\n"));
  EXPECT_THAT(run_graft({"train", "--resume", folder_of_run_, "--epochs", "2"}).error,
              HasSubstr("3 epochs are done already, --epochs is 2: nothing is trained"));
  EXPECT_THAT(run_graft({"train", "--resume", folder_of_run_, "--epochs", "4"}).error,
              Not(HasSubstr("done already")));
}

TEST_F(Runs, GoOnFromAnotherFolder) {
  const std::string folder = folder_.path().string();
  data_ = "mnist:./";
  ASSERT_THAT(run_in_shell("cd '" + folder + "' && exec ", command("whole.onnx", {})), Succeeds());
  ASSERT_THAT(run_in_shell("cd '" + folder + "' && exec ",
                           command("a.onnx", {"--run", folder_of_run_, "--epochs", "2",
                                              "--validate", "mnist:."})),
              Succeeds());
  EXPECT_EQ(config()["settings"]["data"], "mnist:" + folder);
  EXPECT_EQ(config()["settings"]["validate"], "mnist:" + folder);
  const auto resume = [&](const std::string& data) {
    return run_graft({"train", "--resume", folder_of_run_, "--epochs", "3", "--data", data});
  };
  EXPECT_THAT(resume("mnist:" + folder + "/"), Succeeds());
  EXPECT_THAT(resume("fashion-mnist:" + folder), FailsWith(1, "(the run has mnist:" + folder));
  const std::string note = "graft.trained_by";
  const auto noted = [&](const std::string& file) {
    const auto all = onnx::load(path(file)).metadata;
    return std::ranges::find(all, note, &std::pair<std::string, std::string>::first)->second;
  };
  EXPECT_EQ(noted("a.onnx"), noted("whole.onnx")) << "where data lie makes no other file";
}

/// The measurement before the first step is long: a sample a batch.
TEST_F(Runs, AnInterruptBeforeTheFirstUpdateWritesNoModel) {
  folder_.write("a.onnx", "precious");
  data_ = write_mnist(40000);
  std::vector<std::string> slow = command("a.onnx", {"--run", folder_of_run_});
  *(std::ranges::find(slow, "--batch") + 1) = "1";
  Process process = start_graft(slow);
  ASSERT_TRUE(process.says("run " + folder_of_run_ + "\n"));
  process.signal(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 4);
  EXPECT_THAT(outcome.error, HasSubstr("interrupted before the first update"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("wrote")));
  EXPECT_EQ(read("a.onnx"), "precious");
}

TEST_F(Runs, AFolderThatCannotBeMadeIsNamed) {
  folder_.write("runs", "a file");
  const std::string there = "cd '" + folder_.path().string() + "' && GRAFT_NO_RUN=0 exec ";
  EXPECT_THAT(run_in_shell(there, command("a.onnx", {})),
              FailsWith(2, "cannot make folder '" + path("runs") + "'"));
}

TEST_F(Runs, SeedsAreComparedToTheLastDigit) {
  ASSERT_THAT(train("a.onnx", {"--run", folder_of_run_, "--seed", "16777217"}), Succeeds());
  EXPECT_THAT(run_graft({"train", "--resume", folder_of_run_, "--seed", "16777216"}),
              FailsWith(1, "--seed 16777216 (the run has 16777217)"));
}

TEST_F(Runs, AFlagThatIsFalseIsWrittenDownAsFalse) {
  ASSERT_THAT(run_in_shell("GRAFT_AUGMENT=0 ", command("a.onnx", {"--run", folder_of_run_})),
              Succeeds());
  EXPECT_EQ(config()["settings"]["augment"], false);
}

TEST_F(Runs, AutoStartsWhereThereIsNothingToGoOnWith) {
  const std::vector<std::string> automatic{"--run", folder_of_run_, "--resume", "auto"};
  ASSERT_THAT(train("a.onnx", automatic), Succeeds());
  const Outcome again = train("a.onnx", automatic);
  ASSERT_THAT(again, Succeeds());
  EXPECT_THAT(again.out, HasSubstr("going on with run"));
  EXPECT_THAT(again.out, Not(HasSubstr("epoch 1/")));
  EXPECT_THAT(run_graft({"train", "--resume", path("none")}), FailsWith(1, "holds no run"));
}

TEST_F(Runs, OneProcessARun) {
  Process process =
      start_graft(command("a.onnx", {"--run", folder_of_run_, "--epochs", "1000000"}));
  ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(path("run/last.safetensors")); }));
  EXPECT_THAT(run_graft({"train", "--resume", folder_of_run_}),
              FailsWith(1, "another process trains in"));
  process.signal(SIGKILL);
  process.wait();
}

TEST_F(Runs, AFileSizeLimitIsSaidAndTrainingGoesOn) {
  const Outcome outcome =  // the model takes 290 kB, a checkpoint twice as much
      run_in_shell("ulimit -f 800; exec ", command("a.onnx", {"--run", folder_of_run_}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.error, HasSubstr("File too large; training goes on"));
  EXPECT_FALSE(std::filesystem::exists(path("run/last.safetensors")));
  ASSERT_THAT(train("b.onnx", {}), Succeeds());
  EXPECT_EQ(read("a.onnx"), read("b.onnx"));
}

TEST_F(Runs, AFolderThatIsTakenAwayCanBeGoneOnWith) {
  const std::vector<std::string> setting{"--run", folder_of_run_, "--epochs", "100000"};
  std::vector<std::string> endless{GRAFT_BINARY};
  for (const std::string& word : command("a.onnx", setting)) endless.push_back(word);
  Process process(endless);
  const auto wait_for = [&](const std::string& name) {
    for (int i = 0; i < 5000 && !std::filesystem::exists(path(name)); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
  wait_for("run/last.safetensors");
  std::filesystem::rename(folder_of_run_, path("taken"));
  for (const char* name : {"run/metrics.csv", "run/last.safetensors"}) wait_for(name);
  EXPECT_THAT(run_graft({"train", "--resume", folder_of_run_}),
              FailsWith(1, "another process trains in"));
  process.signal(SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_THAT(outcome.error, HasSubstr("run' was taken away, with the checkpoints in it; it is "
                                       "made anew; training goes on"));
  EXPECT_EQ(read("run/config.json"), read("taken/config.json"));
  const auto epoch = nlohmann::json::parse(
      read("run/metrics.jsonl").substr(read("run/metrics.jsonl").rfind("{\"epoch\"")))["epoch"];
  EXPECT_THAT(run_graft({"train", "--resume", folder_of_run_, "--epochs",
                         std::to_string(epoch.get<int>() + 2)}),
              Succeeds());
  const auto is_event_file = [](const auto& entry) {
    return entry.path().filename().string().find("tfevents") != std::string::npos;
  };
  const std::filesystem::directory_iterator files(folder_of_run_);
  EXPECT_EQ(std::count_if(begin(files), end(files), is_event_file), 2);
}

TEST_F(Runs, TheBestIsOfTheRunsFolder) {
  EXPECT_THAT(train("a.onnx", {"--keep", "best", "--no-run"}),
              FailsWith(1, "--keep best takes the weights from the run's folder"));
}

TEST_F(Runs, ABudgetIsSaidAsItWasWritten) {
  EXPECT_THAT(train("a.onnx", {"--no-run", "--memory", "1K"}),
              FailsWith(3, "the budget is 1K (1024 bytes)"));
}

TEST_F(Runs, ALossThatIsNotFiniteBeforeACheckpointLeavesNothing) {
  // The rate rises to a sixth of 1e30 within the first epoch.
  const Outcome outcome = train("a.onnx", {"--run", folder_of_run_, "--optimizer", "sgd", "--lr",
                                           "1e30", "--warmup", "6", "--epochs", "2"});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_THAT(outcome.error, HasSubstr("(epoch 1, batch "));
  EXPECT_THAT(outcome.error, HasSubstr("try a smaller learning rate"));
  EXPECT_THAT(outcome.error, HasSubstr("; nothing is written"));
  EXPECT_THAT(outcome.error, Not(HasSubstr("-nan")));
  EXPECT_FALSE(std::filesystem::exists(path("a.onnx")));
}

TEST_F(Runs, LaterNaNsLeaveTheEpochBefore) {
  const Outcome outcome =
      train("a.onnx", {"--run", folder_of_run_, "--optimizer", "sgd", "--schedule", "step", "--lr",
                       "1e-9", "--every", "4", "--gamma", "1e30", "--momentum", "0"});
  ASSERT_EQ(outcome.code, 5) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("has the weights of update 4"));
  const Model saved = onnx::load(path("a.onnx"));
  for (const Value* value : saved.graph().initializers()) {
    for (const float x : value->initializer().values<const float>()) ASSERT_TRUE(std::isfinite(x));
  }
}

TEST_F(Runs, TheFileRemembersItsNormalization) {
  const Outcome trained = train("a.onnx", {"--normalize", "data", "--json"});
  ASSERT_THAT(trained, Succeeds());
  const auto lines = trained.out;
  const std::string epoch = lines.substr(lines.rfind(R"({"event":"epoch")"));
  const nlohmann::json last = nlohmann::json::parse(epoch.substr(0, epoch.find('\n')));
  const Outcome measured = run_graft(
      {"eval", path("a.onnx"), "--data", data_, "--json", "--batch", "16", "--threads", "1"});
  const nlohmann::json now = nlohmann::json::parse(measured.out);
  EXPECT_EQ(now["loss"], last["validation_loss"]) << "to the last digit";
  EXPECT_EQ(now["accuracy"], last["validation_accuracy"]);
  EXPECT_THAT(measured.error, HasSubstr("normalized by 0.1307:0.3081, as the file says"));
  const Outcome other =
      run_graft({"eval", path("a.onnx"), "--data", data_, "--normalize", "none", "--json"});
  EXPECT_THAT(other.error, HasSubstr("trained with --normalize 0.1307:0.3081"));
  EXPECT_NE(nlohmann::json::parse(other.out)["loss"], now["loss"]);
}

TEST_F(Runs, WhatIsTrainedAlreadyGetsASmallRate) {
  ASSERT_THAT(train("a.onnx", {"--epochs", "12"}), Succeeds());
  model_ = path("a.onnx");
  const Outcome more = train("b.onnx", {"--epochs", "1"});
  ASSERT_THAT(more, Succeeds());
  EXPECT_THAT(more.out, HasSubstr("adamw, learning rate 0.0001"));
  EXPECT_THAT(more.out, HasSubstr("by default for a file that may be trained"));
  EXPECT_THAT(more.out, HasSubstr("before: validation loss"));
  for (const auto& [sgd, momentum] :
       std::vector<std::pair<std::string, std::string>>{{"sgd", ", momentum 0.9"},
                                                        {"sgd:momentum=0.5", ", momentum 0.5"},
                                                        {"sgd:momentum=0", ""}}) {
    EXPECT_THAT(train("s.onnx", {"--epochs", "1", "--optimizer", sgd}).out,
                HasSubstr("sgd" + momentum + ", learning rate 0.001,"));
  }
  const Outcome worse = train("c.onnx", {"--epochs", "1", "--optimizer", "sgd", "--lr", "30"});
  EXPECT_THAT(worse, Succeeds());
  EXPECT_THAT(worse.error, HasSubstr("training made the model worse"));
  ASSERT_THAT(train("d.onnx", {"--epochs", "1", "--optimizer", "sgd", "--lr", "30", "--keep",
                               "best", "--run", folder_of_run_}),
              Succeeds());
  const Model before = onnx::load(model_);
  const Model kept = onnx::load(path("d.onnx"));
  for (const Value* value : before.graph().initializers()) {
    EXPECT_TRUE(equal_bits(value->initializer(), kept.graph().find(value->name())->initializer()));
  }
}

TEST_F(Runs, ADryRunWritesNothing) {
  const Outcome outcome = train("a.onnx", {"--dry-run", "--json", "--run", folder_of_run_});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr(R"("event":"dry_run","step_seconds":)"));
  EXPECT_THAT(outcome.out, HasSubstr(R"("run":")" + folder_of_run_ + R"("})"))
      << "--run counts before GRAFT_NO_RUN";
  EXPECT_FALSE(std::filesystem::exists(path("a.onnx")));
  EXPECT_FALSE(std::filesystem::exists(folder_of_run_));
}

TEST_F(Runs, ARateIsFoundAndTakenAndWrittenDown) {
  const Outcome found =
      run_graft({"lr-find", model_, "--data", data_, "--batch", "16", "--threads", "1", "--json"});
  ASSERT_THAT(found, Succeeds());
  const nlohmann::json line = nlohmann::json::parse(found.out);
  EXPECT_GT(line["rate"], 1e-3);
  EXPECT_LT(line["rate"], 1.0);
  ASSERT_THAT(train("a.onnx", {"--lr", "auto", "--run", folder_of_run_}), Succeeds());
  EXPECT_FLOAT_EQ(config()["settings"]["lr"].get<float>(), line["rate"].get<float>());
  ASSERT_THAT(run_graft({"train", "--config", path("run/config.json"), "--out", path("b.onnx")}),
              Succeeds());
  EXPECT_EQ(read("a.onnx"), read("b.onnx"));
}

TEST_F(Runs, MetricsAreMeasuredByName) {
  const Outcome outcome = train("a.onnx", {"--metrics", "top5,f1", "--json", "--epochs", "1"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr(R"("validation_top5":)"));
  EXPECT_THAT(outcome.out, HasSubstr(R"("validation_f1":)"));
  EXPECT_THAT(train("a.onnx", {"--metrics", "f2"}), FailsWith(1, "unknown metric 'f2'"));
}

}  // namespace
}  // namespace graft::testing
