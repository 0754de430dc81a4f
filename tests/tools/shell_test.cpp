// What is made from the options: help, completion, the manual page; and what doctor finds.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/tools/tool_test.h"
#include "tools/graft/cgroup.h"

namespace graft::testing {
namespace {

class Shell : public ToolTest {
 protected:
  std::string script(const std::string& shell) const {
    const Outcome outcome = run_graft({"completion", shell});
    EXPECT_THAT(outcome, Succeeds());
    folder_.write("graft." + shell, outcome.out);
    return path("graft." + shell);
  }

  static Outcome in(const std::string& shell, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"/usr/bin/env", shell};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command);
  }

  /// What bash offers for the last of these words.
  std::string bash_offers(const std::string& words) const {
    const Outcome outcome =
        in("bash", {"-c", "source '" + script("bash") + "'; COMP_WORDS=(" + words +
                              "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _graft; "
                              "echo \"${COMPREPLY[*]}\""});
    EXPECT_THAT(outcome, Succeeds());
    return outcome.out;
  }
};

TEST_F(Shell, BashCompletes) {
  EXPECT_EQ(bash_offers("graft tr"), "train\n");
  EXPECT_EQ(bash_offers("graft train --le"), "--learning-rate\n");
  EXPECT_EQ(bash_offers("graft train x.onnx --optimizer a"), "adam adamw adagrad\n");
  EXPECT_EQ(bash_offers("graft train x.onnx --optimizer = rm"), "rmsprop\n");
  EXPECT_EQ(bash_offers("graft new le"), "lenet\n");
  EXPECT_EQ(bash_offers("graft eval x.onnx --split ''"), "train test\n");
  EXPECT_EQ(bash_offers("graft train x.onnx --lr a"), "auto\n") << "NUMBER stands for a value";
  EXPECT_EQ(bash_offers("graft export-step x.onnx --loss hu"), "huber\n");
  EXPECT_EQ(bash_offers("graft eval mod"), "\n") << "then names of files are offered";
}

TEST_F(Shell, ZshCompletes) {
  EXPECT_THAT(in("zsh", {"-n", script("zsh")}), Succeeds());
  // Its completion wants a terminal; what _arguments is given is what there is to see.
  const Outcome outcome =
      in("zsh", {"-f", "-c",
                 "compdef() {}; _arguments() { print -l -- $@ }; source '" + script("zsh") +
                     "'; words=(graft train --o); CURRENT=3; _graft"});
  EXPECT_THAT(outcome, Succeeds());
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr("\n--lr[learning rate"), HasSubstr("\n--learning-rate[learning rate"),
            HasSubstr(":value:(sgd adam adamw rmsprop adagrad"), HasSubstr("*:MODEL:_files\n")));
}

TEST_F(Shell, ZshCompletesFromAFolderOfItsPath) {
  folder_.write("_graft", run_graft({"completion", "zsh"}).out);
  const Outcome outcome = in(
      "zsh", {"-f", "-c",
              "fpath=('" + folder_.path().string() +
                  "'); autoload -U _graft; "
                  "_arguments() { print -l -- $@ }; words=(graft train --o); CURRENT=3; _graft"});
  EXPECT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr("*:MODEL:_files\n")) << "at the first call";
}

TEST_F(Shell, FishCompletes) {
  const auto offers = [&](const std::string& line) {
    const Outcome outcome =
        in("fish",
           {"--no-config", "-c", "source '" + script("fish") + "'; complete -C '" + line + "'"});
    EXPECT_THAT(outcome, Succeeds());
    return outcome.out;
  };
  EXPECT_THAT(offers("graft tr"), HasSubstr("train\ttrain a model"));
  EXPECT_THAT(offers("graft train --learn"), HasSubstr("--learning-rate\t"));
  EXPECT_THAT(offers("graft train --optimizer ada"), HasSubstr("adagrad"));
}

TEST_F(Shell, UnknownShellsAreRefused) {
  EXPECT_THAT(run_graft({"completion", "tcsh"}), FailsWith(1, "tcsh"));
}

/// Each option of each verb, and no request that man(7) does not have.
TEST_F(Shell, TheManualPageHasEveryOption) {
  const Outcome page = run_graft({"man"});
  ASSERT_THAT(page, Succeeds());
  const std::set<std::string> requests{".TH", ".SH", ".SS", ".TP", ".PP",
                                       ".B",  ".EX", ".EE", ".nf", ".fi"};
  std::istringstream lines(page.out);
  for (std::string line; std::getline(lines, line);) {
    const bool is_request = line.starts_with('.');
    EXPECT_TRUE(!is_request || requests.contains(line.substr(0, line.find(' ')))) << line;
    EXPECT_FALSE(line.starts_with('\'')) << line;
  }
  for (const char* part : {".SS train", ".SS doctor", "\\-\\-learning\\-rate", "graft eval trained",
                           "GRAFT_VERB_OPTION"}) {
    EXPECT_THAT(page.out, HasSubstr(part));
  }
}

TEST_F(Shell, AnUnknownVerbIsNamedBeforeItsOptions) {
  EXPECT_THAT(run_graft({"trains", "--data", "x"}),
              FailsWith(1, "unknown verb 'trains'; did you mean 'train'?"));
}

TEST_F(Shell, HelpOfAnUnknownVerbIsRefused) {
  EXPECT_THAT(run_graft({"trains", "--help"}),
              FailsWith(1, "unknown verb 'trains'; did you mean 'train'?"));
  EXPECT_THAT(run_graft({"help", "trains"}), FailsWith(1, "unknown verb 'trains'"));
  EXPECT_THAT(run_graft({"train", "--help"}), Succeeds());
}

TEST_F(Shell, HelpIsAVerbToo) {
  const Outcome all = run_graft({"help"});
  EXPECT_THAT(all, Succeeds());
  EXPECT_EQ(all.out, run_graft({"--help"}).out);
  const Outcome one = run_graft({"help", "train"});
  EXPECT_THAT(one, Succeeds());
  EXPECT_EQ(one.out, run_graft({"train", "--help"}).out);
}

/// The order of the help is that in which things are done.
TEST_F(Shell, HelpOfEditHasItsOrder) {
  const std::string help = run_graft({"edit", "--help"}).out;
  std::size_t last = 0;
  for (const char* option :
       {"\n  --set", "\n  --truncate", "\n  --strip-probabilities", "\n  --unfreeze",
        "\n  --replace-head", "\n  --append", "\n  --prefix", "\n  --batch", "\n  --precision"}) {
    const std::size_t at = help.find(option);
    EXPECT_NE(at, std::string::npos) << option;
    EXPECT_GT(at, last) << option;
    last = at;
  }
}

TEST_F(Shell, HelpHasGroupsAndAnExample) {
  const Outcome all = run_graft({"--help"});
  EXPECT_THAT(all, Succeeds());
  EXPECT_THAT(all.out,
              AllOf(HasSubstr("\nTraining\n  train "), HasSubstr("example: graft train ")));
  const Outcome one = run_graft({"train", "--help"});
  EXPECT_THAT(one, Succeeds());
  EXPECT_THAT(one.out,
              AllOf(HasSubstr("usage:   graft train MODEL --out FILE --data SPEC [options]\n"),
                    HasSubstr("example: graft train lenet.onnx"), HasSubstr("\nUpdate\n"),
                    HasSubstr("--lr, --learning-rate NUMBER|auto"), HasSubstr("(default: cosine)"),
                    HasSubstr("--epochs N"), HasSubstr("(required)")));
}

TEST_F(Shell, DoctorSaysWhatIsThere) {
  const Outcome outcome = run({"/usr/bin/env", "GRAFT_LIMIT=7", "GRAFT_NONSENSE=1",
                               "GRAFT_ISA=", GRAFT_BINARY, "doctor", "--json"});
  ASSERT_THAT(outcome, Succeeds());
  std::map<std::string, nlohmann::json> found;
  for (const nlohmann::json& line : json_lines(outcome)) {
    EXPECT_FALSE(line["found"].get<std::string>().empty()) << line;
    found[line["name"]] = line;
  }
  for (const char* name : {"build", "CPU", "kernels", "speed", "threads", "memory", "oneDNN", "RE2",
                           "devices", "data", "this folder", "terminal"}) {
    EXPECT_TRUE(found.contains(name)) << name;
  }
  EXPECT_THAT(found["environment"]["found"].get<std::string>(),
              AllOf(StartsWith("sets options: "), HasSubstr(" GRAFT_LIMIT=7")));
  EXPECT_THAT(found["environment"]["advice"].get<std::string>(),
              AllOf(HasSubstr("GRAFT_NONSENSE"), Not(HasSubstr("GRAFT_ISA"))));
}

class Cgroup : public ToolTest {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, text);
  }
  cli::CgroupLimits limits(const std::string& membership) const {
    write("self", membership);
    return cli::read_cgroup_limits(path("self"), path("mount"));
  }
};

TEST_F(Cgroup, TheNarrowestOfTheGroupsAboveCounts) {
  write("mount/a/cpu.max", "150000 100000\n");
  write("mount/a/b/cpu.max", "max 100000\n");
  write("mount/a/memory.max", "max\n");
  write("mount/a/b/memory.max", "1048576\n");
  const cli::CgroupLimits found = limits("0::/a/b\n");
  EXPECT_EQ(found.cores, 1.5);
  EXPECT_EQ(found.memory_bytes, 1048576U);
}

TEST_F(Cgroup, TheFirstVersionHasAFolderAController) {
  write("mount/memory/x/memory.limit_in_bytes", "2097152\n");
  write("mount/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("mount/cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n");
  write("mount/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  const cli::CgroupLimits found = limits("5:memory:/x\n4:cpu,cpuacct:/x\n");
  EXPECT_EQ(found.memory_bytes, 2097152U);
  EXPECT_EQ(found.cores, 0.5);
}

TEST_F(Cgroup, WithoutLimitsThereAreNone) {
  for (const char* membership : {"", "nonsense\n", "0::/none\n", "1:cpu:/\n"}) {
    const cli::CgroupLimits found = limits(membership);
    EXPECT_FALSE(found.cores.has_value());
    EXPECT_FALSE(found.memory_bytes.has_value());
  }
}

}  // namespace
}  // namespace graft::testing
