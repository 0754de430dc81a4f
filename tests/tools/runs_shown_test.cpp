// graft plot and graft report, on the files that a run leaves behind.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/tools/tool_test.h"

namespace graft::testing {
namespace {

class RunsShown : public ToolTest {
 protected:
  /// A run's folder with these lines of metrics and these settings; returns its path.
  std::string write_run(const std::string& name, const std::string& metrics,
                        const nlohmann::json& settings = nlohmann::json::object()) const {
    std::filesystem::create_directories(folder_.path() / name);
    folder_.write(name + "/metrics.jsonl", metrics);
    const nlohmann::json config{{"graft", "0.1.0"},
                                {"machine", {{"host", "here"}, {"threads", 2}}},
                                {"settings", settings}};
    folder_.write(name + "/config.json", config.dump());
    return path(name);
  }

  static constexpr const char* kMetrics =
      "{\"epoch\":0,\"updates\":0,\"validation_loss\":2.5,\"validation_accuracy\":0.1}\n"
      "{\"epoch\":1,\"updates\":4,\"learning_rate\":0.05,\"loss\":1.5,\"validation_loss\":1.25,"
      "\"validation_accuracy\":0.5,\"samples\":64,\"seconds\":0.5}\n"
      "{\"epoch\":2,\"updates\":8,\"learning_rate\":0.01,\"loss\":0.75,\"validation_loss\":0.5,"
      "\"validation_accuracy\":0.875,\"samples\":64,\"seconds\":0.5}\n"
      "{\"epoch\":3,\"upd";
};

TEST_F(RunsShown, PlotDrawsCurvesAndPassesOverATornLine) {
  const std::string run_folder = write_run("a-1", kMetrics);
  const Outcome outcome = run({"/usr/bin/env", "LC_ALL=C", GRAFT_BINARY, "plot", run_folder,
                               "--measure", "validation_accuracy"});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("a validation_accuracy 0.8750\n"), HasSubstr("0.8750 |"),
                    HasSubstr("0.1000 |a"), HasSubstr("epoch 2\n"), Not(HasSubstr("epoch 3"))));
  EXPECT_THAT(run_graft({"plot", run_folder, write_run("b", kMetrics)}).out,
              AllOf(HasSubstr("b a-1 loss 0.7500"), HasSubstr("d b loss 0.7500"),
                    Not(HasSubstr("learning_rate")), Not(HasSubstr("samples"))));
}

/// The distance of the largest numbers that a file can hold is none, and neither was a place by it.
TEST_F(RunsShown, PlotTakesTheLargestNumbers) {
  const std::string losses = write_run("losses", R"({"epoch":1,"loss":-1.7e308})"
                                                 "\n"
                                                 R"({"epoch":2,"loss":1.7e308})"
                                                 "\n");
  EXPECT_THAT(run_graft({"plot", losses}), Succeeds());
  const std::string epochs = write_run("epochs", R"({"epoch":-1.2345e300,"loss":-1e308})"
                                                 "\n"
                                                 R"({"epoch":1.2345e300,"loss":1e308})"
                                                 "\n");
  EXPECT_THAT(run_graft({"plot", epochs}), Succeeds());
}

TEST_F(RunsShown, WhatIsNoRunIsSaid) {
  EXPECT_THAT(run_graft({"plot", path("none")}), FailsWith(2, "wanted a folder that graft train"));
  EXPECT_THAT(run_graft({"report", path("none")}),
              FailsWith(2, "wanted a folder that graft train"));
  const std::string empty = write_run("empty", "");
  EXPECT_THAT(run_graft({"plot", empty}), FailsWith(1, "no epoch has ended"));
  EXPECT_THAT(run_graft({"plot", write_run("a", kMetrics), "--measure", "f1"}),
              FailsWith(1, "measured: 'validation_loss'"));
  EXPECT_THAT(run_graft({"report", empty}), Succeeds());
}

TEST_F(RunsShown, ReportMeasuresTheModelOnTheRunsData) {
  const std::string model = write_mlp();
  const nlohmann::json settings{{"out", model},
                                {"data", write_mnist()},
                                {"batch", 16},
                                {"loss", "cross_entropy"},
                                {"optimizer", "adamw:beta2=0.99"},
                                {"note", "<script>alert(1)</script>"}};
  const std::string run_folder = write_run("a-1", kMetrics, settings);
  ASSERT_THAT(run_graft({"report", run_folder}), Succeeds());
  const std::string page = read("a-1/report.html");
  EXPECT_LT(page.size(), 1U << 20U);
  for (const char* part :
       {"<h2>Curves</h2>", "validation_accuracy", "<h3>Confusion matrix</h3>", " of 64 right",
        "<h3>Wrong, and sure of it</h3>", "data:image/bmp;base64,Qk", "<h3>Net</h3>", ">Gemm<",
        "<h3>Time of a training step</h3>", "GFLOP/s", "<h2>Settings</h2>", "adamw",
        "&lt;script&gt;alert"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, Not(HasSubstr("text-anchor=\"middle\"></text>"))) << "a box without a type";
  for (const char* part : {"<script", "http://", "https://", "src=\"/"}) {
    EXPECT_THAT(page, Not(HasSubstr(part))) << "the page needs nothing beside itself";
  }
}

TEST_F(RunsShown, RunsStandSideBySide) {
  const std::string first = write_run("a-1", kMetrics, {{"lr", 0.05}, {"batch", 16}});
  const std::string second = write_run("a-2", kMetrics, {{"lr", 0.01}, {"batch", 16}});
  const Outcome outcome = run_graft({"report", first, second, "-o", path("both.html")});
  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.error, HasSubstr("a-2: no model: config.json does not say where"));
  const std::string page = read("both.html");
  EXPECT_THAT(page, AllOf(HasSubstr("<tr class=\"differs\"><th>lr</th><td>0.05</td><td>0.01</td>"),
                          HasSubstr("<tr><th>batch</th><td>16</td><td>16</td>"),
                          HasSubstr("<tr><th>graft</th><td>0.1.0</td><td>0.1.0</td>"),
                          HasSubstr("<tr><th>host</th><td>here</td><td>here</td>"),
                          HasSubstr("a-1 validation_loss"), HasSubstr("a-2 validation_loss")));
}

}  // namespace
}  // namespace graft::testing
