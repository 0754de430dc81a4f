// What people see: the command line in terminals of several widths, made by tmux.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>
#include <thread>

#include "io/onnx.h"
#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

/// A terminal in which a command runs; "graft-ended CODE" is shown behind it.
class Session {
 public:
  Session(const std::filesystem::path& folder, int columns, const std::string& command)
      : socket_((folder / ("tmux" + std::to_string(++count_))).string()),
        record_(socket_ + ".txt") {
    const std::string line = "until test -e " + record_ + "; do sleep 0.01; done; " + command +
                             "; echo graft-ended $?; sleep 300";
    const Outcome made =
        tmux({"-f", "/dev/null", "new-session", "-d", "-x", std::to_string(columns), "-y", "60",
              line, ";", "pipe-pane", "cat > " + record_});
    EXPECT_EQ(made.code, 0) << "tmux, which scripts/setup --tests installs: " << made.error;
  }
  ~Session() { tmux({"kill-server"}); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Outcome tmux(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{"/usr/bin/env", "-u", "TMUX", "TERM=xterm",
                                     "tmux",         "-S", socket_};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command);
  }

  /// The rows of the screen as they stand there; with -J, rows that the terminal wrapped are one.
  Lines rows(const std::string& option = "-p") const {
    return lines_of(tmux({"capture-pane", "-p", option}).out);
  }
  bool has_ended() const {
    return std::ranges::any_of(
        rows(), [](const std::string& row) { return row.starts_with("graft-ended"); });
  }

  /// Calls `look` with the rows again and again until the command ends or `look` returns false. A
  /// quick command may be over before the terminal first answers.
  void watch(const std::function<bool(const Lines&)>& look) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    bool goes_on = true;
    while (goes_on && !has_ended()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      goes_on = look(rows());
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
  }

  /// All that the command wrote until it ended, also what was erased before anybody saw it.
  std::string written() const {
    std::string all;
    EXPECT_TRUE(wait_until([&] {
      std::ostringstream content;
      content << std::ifstream(record_, std::ios::binary).rdbuf();
      all = content.str();
      return all.find("graft-ended") != std::string::npos;
    }));
    return all;
  }

 private:
  static inline int count_ = 0;  // a server may still be ending when the next one starts
  std::string socket_;
  std::string record_;
};

/// "epoch 1/2  [##---", "eval  12 %": two spaces stand behind what is going on.
int bars_in(const Lines& rows) {
  static const std::regex kBar("(epoch [0-9]+/[0-9]+|validation|eval|measuring)  .*");
  return static_cast<int>(std::ranges::count_if(
      rows, [](const std::string& row) { return std::regex_match(row, kBar); }));
}

/// So many that an epoch of single samples lasts longer than the terminal takes to answer;
/// sanitizers make it last by themselves.
#ifdef NDEBUG
constexpr int kSamplesToTrain = 15'000;
#else
constexpr int kSamplesToTrain = 3'000;
#endif

class Screen : public ToolTest {
 protected:
  /// A batch of one makes an epoch last.
  std::string train(const std::string& epochs, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"train",   model_,    "--data", data_,      "--out",
                                       path("o"), "--batch", "1",      "--epochs", epochs};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return graft_line(arguments);
  }

  std::string model_ = write_mlp();
  std::string data_ = write_mnist(kSamplesToTrain);
};

class Terminal : public Screen, public ::testing::WithParamInterface<int> {};

/// No line is wrapped by the terminal or left behind, whatever its width.
TEST_P(Terminal, ProgressFitsAndGoesAway) {
  const Session session(folder_.path(), GetParam(), train("2"));
  session.watch([&](const Lines& rows) {
    EXPECT_LE(bars_in(rows), 1) << ::testing::PrintToString(rows);
    return true;
  });
  EXPECT_THAT(session.written(), HasSubstr("epoch 1/2  ["));
  const Lines rows = session.rows();
  EXPECT_EQ(rows, session.rows("-J")) << "a line was wrapped by the terminal";
  EXPECT_EQ(bars_in(rows), 0) << ::testing::PrintToString(rows);
  for (const char* start : {"trains ", "loss ", "update ", "epoch 1/2: loss ", "epoch 2/2: loss ",
                            "wrote ", "graft-ended 0"}) {
    const auto begins = [&](const std::string& row) { return row.starts_with(start); };
    EXPECT_EQ(std::ranges::count_if(rows, begins), 1) << start;
  }
}

INSTANTIATE_TEST_SUITE_P(Columns, Terminal, ::testing::Values(60, 80, 200));

TEST_F(Screen, NarrowingAndCtrlCLeaveNothingBehind) {
  const Session session(folder_.path(), 200, train("1000000"));
  const auto wait_for_bar = [&] {
    session.watch([](const Lines& rows) { return bars_in(rows) == 0; });
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  };
  wait_for_bar();
  session.tmux({"resize-window", "-x", "50"});
  wait_for_bar();
  const Lines narrow = session.rows();
  EXPECT_LE(bars_in(narrow), 1) << ::testing::PrintToString(narrow);  // none between epochs
  session.tmux({"send-keys", "C-c"});
  session.watch([](const Lines&) { return true; });
  const Lines rows = session.rows("-J");
  EXPECT_EQ(bars_in(rows), 0);
  ASSERT_THAT(rows, SizeIs(::testing::Ge(3U)));
  EXPECT_EQ(rows.back(), "graft-ended 4");
  EXPECT_THAT(rows[rows.size() - 2], StartsWith("graft: interrupted after"));
}

/// The terminal has its new width a moment before it says so.
TEST_F(Screen, NoWidthLeavesAnOldBar) {
  data_ = write_mnist(20'000);
  const Session session(folder_.path(), 60, train("1000000"));
  session.watch([](const Lines& rows) { return bars_in(rows) == 0; });
  for (const int columns : {200, 41, 81, 50, 120, 60, 200, 45, 90, 40, 160, 70}) {
    session.tmux({"resize-window", "-x", std::to_string(columns)});
    std::this_thread::sleep_for(std::chrono::milliseconds(350));
    const Lines rows = session.rows();
    ASSERT_FALSE(session.has_ended());
    EXPECT_LE(bars_in(rows), 1) << columns << ' ' << ::testing::PrintToString(rows);
  }
  session.tmux({"send-keys", "C-c"});
}

TEST_F(Screen, ColoursAreLeftOutOnRequest) {
  for (const std::string before : {"NO_COLOR=1 ", ""}) {
    const Session session(folder_.path(), 80, before + train("2"));
    const bool has_colour = session.written().find("\x1b[32m#") != std::string::npos;
    EXPECT_EQ(has_colour, before.empty());
  }
}

TEST_F(Screen, QuietSaysNothing) {
  const Session session(folder_.path(), 80, train("2", {"--quiet"}));
  session.watch([](const Lines& rows) {
    EXPECT_TRUE(rows.empty() || rows.front() == "graft-ended 0") << rows.front();
    return true;
  });
  EXPECT_THAT(session.rows(), ElementsAre("graft-ended 0"));
}

TEST_F(Screen, ADumbTerminalGetsLinesOnly) {
  const Session session(folder_.path(), 80, "TERM=dumb " + train("2"));
  session.watch([](const Lines& rows) {
    EXPECT_EQ(bars_in(rows), 0);
    return true;
  });
  EXPECT_EQ(session.rows().back(), "graft-ended 0");
}

TEST_F(Screen, EvalAndBenchShowHowFarTheyAre) {
  const auto shows = [&](const std::string& name, const std::vector<std::string>& arguments) {
    const Session session(folder_.path(), 80, graft_line(arguments));
    EXPECT_THAT(session.written(), HasSubstr(name + "  ["));
    session.watch([](const Lines&) { return true; });
    EXPECT_EQ(bars_in(session.rows()), 0);
  };
  shows("eval", {"eval", model_, "--data", data_});
  shows("measuring", {"bench", model_, "--seconds", "0.2"});
}

TEST_F(Screen, HelpFitsTheWidth) {
  for (const int columns : {60, 80}) {
    const Session session(folder_.path(), columns, graft_line({"eval", "--help"}));
    session.watch([](const Lines&) { return true; });
    EXPECT_EQ(session.rows(), session.rows("-J"));
  }
}

/// Exporters make hundreds of names.
TEST_F(Screen, ManyNamesAreFewWords) {
  Model model = onnx::load(model_);
  Graph& graph = model.graph();
  const ValueType type = graph.outputs().front()->type();
  for (int i = 0; i < 200; ++i) {
    const std::string name = text(i < 100 ? "tail." : "other", i);
    Value* const bias = graph.add_initializer(name, Tensor::zeros(DType::f32, {10}));
    Node* const add = graph.add_node("Add", "", {graph.outputs().front(), bias}, {name + "_sum"});
    add->output()->set_type(type);
    graph.set_outputs({add->output()});
  }
  model_ = path("many.onnx");
  onnx::save(model, model_);
  const std::vector<std::string> arguments{"train",   model_,    "--data",     data_,
                                           "--out",   path("o"), "--epochs",   "1",
                                           "--limit", "64",      "--validate", "none"};
  const Outcome brief = run_graft(arguments);
  ASSERT_THAT(brief, Succeeds());
  EXPECT_LT(brief.out.size(), 600U);
  EXPECT_THAT(brief.out, HasSubstr("tail.* 1,000 (100)"));
  EXPECT_THAT(brief.out, HasSubstr("others "));
  EXPECT_THAT(brief.out, Not(HasSubstr("other199")));
  std::vector<std::string> verbose = arguments;
  verbose.push_back("-v");
  EXPECT_THAT(run_graft(verbose).out, HasSubstr("other199 f32[10]\n"));
}

}  // namespace
}  // namespace graft::testing
