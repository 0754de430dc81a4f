// Ordinary events while the command line works: readers that go away, full disks, names that no
// file can have, signals, names in files that a terminal would obey.
#include <gmock/gmock.h>
#include <signal.h>

#include "io/npz.h"
#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

class Events : public ToolTest {
 protected:
  Events() : data_(write_mnist()), model_(write_mlp()) {}

  std::vector<std::string> train(const std::string& out, const std::string& epochs) const {
    return {"train",   model_,     "--data", data_,        "--out",
            path(out), "--epochs", epochs,   "--validate", "none"};
  }

  void expect_no_temporary() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
    }
  }

  std::string data_;
  std::string model_;
};

TEST_F(Events, AReaderThatGoesAwayDoesNotEndTheTraining) {
  run_in_shell("", train("out.onnx", "40"), " | head -1");
  ASSERT_TRUE(std::filesystem::exists(path("out.onnx")));
  ASSERT_THAT(run_graft(train("same.onnx", "40")), Succeeds());
  EXPECT_EQ(read("out.onnx"), read("same.onnx"));
}

TEST_F(Events, AFileThatMayNotGrowIsFoundAtTheStart) {
  const Outcome outcome = run_in_shell("ulimit -f 8; exec ", train("out.onnx", "1"));
  EXPECT_THAT(outcome, FailsWith(2, "File too large"));
  EXPECT_THAT(outcome.out, IsEmpty());
  expect_no_temporary();
}

TEST_F(Events, AFileThatMayNotGrowLeavesNothingBehind) {
  EXPECT_THAT(
      run_in_shell("ulimit -f 8; exec ", {"edit", model_, "--batch", "4", "--out", path("out")}),
      FailsWith(2, "File too large"));
  expect_no_temporary();
}

TEST_F(Events, NamesThatNoFileCanHaveAreFoundAtTheStart) {
  const Outcome outcome = run_graft(train(std::string(256, 'a'), "1"));
  EXPECT_THAT(outcome, FailsWith(2, "File name too long"));
  EXPECT_THAT(outcome.out, IsEmpty());
  std::filesystem::create_symlink("loop", path("loop"));
  EXPECT_THAT(run_graft(train("loop", "1")), FailsWith(2, "Too many levels"));
  EXPECT_TRUE(std::filesystem::is_symlink(path("loop")));
}

TEST_F(Events, ALostTerminalSavesWhatIsThere) {
  Process process = start_graft(train("out.onnx", "1000000"));
  ASSERT_TRUE(process.says("epoch 1/"));
  process.signal(SIGHUP);
  EXPECT_EQ(process.wait().code, 4);
  EXPECT_TRUE(std::filesystem::exists(path("out.onnx")));
}

/// Half a million lines take a while to read.
TEST_F(Events, ASignalWhileDataAreReadEndsTheProcess) {
  std::string lines = "a,b,label\n";
  for (int i = 0; i < 500'000; ++i) lines += "0.12345678901,1.23456789012,1\n";
  folder_.write("long.csv", lines);
  Process process = start_graft({"train", model_, "--data", "csv:" + path("long.csv"), "--out",
                                 path("out.onnx"), "--epochs", "1"});
  ASSERT_TRUE(wait_until([&] { return process.handles(SIGTERM); }));
  process.signal(SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_THAT(outcome, FailsWith(4, "interrupted before the first update; nothing is written"));
  EXPECT_FALSE(std::filesystem::exists(path("out.onnx")));
  expect_no_temporary();
}

TEST_F(Events, SeedsAreWholeNumbersOf64Bits) {
  for (const std::string seed : {"-1", "18446744073709551616", "1.5", "0x10"}) {
    EXPECT_THAT(run_graft({"new", "mlp", "--seed", seed, "--out", path("new.onnx")}),
                FailsWith(1, "is no whole number from 0 to 2^64 - 1"))
        << seed;
  }
  EXPECT_THAT(
      run_graft({"new", "mlp", "--seed", "18446744073709551615", "--out", path("new.onnx")}),
      Succeeds());
}

TEST_F(Events, ThousandsOfThreadsAreRefused) {
  std::vector<std::string> command = train("out.onnx", "1");
  command.insert(command.end(), {"--threads", "4096"});
  EXPECT_THAT(run_graft(command), FailsWith(1, "--threads"));
}

TEST_F(Events, NamesInFilesDoNotReachTheTerminal) {
  Model model = onnx::load(model_);
  const std::string red =
      "\x1b[31m red \xc2\x9b"
      "2J \x7f";
  model.graph().rename(model.graph().outputs().front(), red);
  onnx::save(model, path("red.onnx"));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"inspect", path("red.onnx")},
        {"inspect", path("red.onnx"), "--json"},
        {"edit", path("red.onnx"), "--truncate", "none", "--out", path("out.onnx")}}) {
    const Outcome outcome = run_graft(command);
    const std::string all = outcome.out + outcome.error;
    EXPECT_THAT(all, HasSubstr("1b"));
    for (const char* control : {"\x1b", "\xc2\x9b", "\x7f"})
      EXPECT_THAT(all, Not(HasSubstr(control)));
  }
}

TEST_F(Events, LimitsAreRaisedByName) {
  EXPECT_THAT(run_graft({"inspect", model_, "--allow", "folded=2G", "--allow", "rank=5"}),
              Succeeds());
  EXPECT_THAT(run_graft({"inspect", model_, "--allow", "fold=2G"}),
              FailsWith(1, "'fold=2G' names no limit; valid: folded, "));
  EXPECT_THAT(run_graft({"inspect", model_, "--allow", "folded"}), FailsWith(1, "has no number"));
  EXPECT_THAT(run_graft({"inspect", model_, "--allow", "rank=1"}), FailsWith(2, "the limit is 1"));
}

TEST_F(Events, AnImportThatTakesTooLongIsRefused) {
  Model model;
  model.set_opset("", 21);
  Value* value = model.graph().add_input("x", {DType::f32, SymShape{2}});
  for (int i = 0; i < 300; ++i) {
    value = model.graph().add_node("Relu", "", {value}, {text("y", i)})->output();
    value->set_type({DType::f32, SymShape{2}});
  }
  model.graph().add_output(value);
  onnx::save(model, path("long.onnx"));
  EXPECT_THAT(
      run_graft({"inspect", path("long.onnx"), "--allow", "seconds=0"}),
      FailsWith(2, "s of processor time; the limit is 0; --allow seconds=NUMBER raises it"));
  EXPECT_THAT(run_graft({"inspect", path("long.onnx"), "--allow", "seconds=20"}).error,
              Not(HasSubstr("processor time")));
}

}  // namespace
}  // namespace graft::testing
