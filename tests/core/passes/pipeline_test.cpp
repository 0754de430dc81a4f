#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/graph/print.h"
#include "core/passes/pass_watch.h"
#include "core/passes/pipeline.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

using passes::Pass;
using passes::PassContext;
using passes::PassLog;
using passes::Pipeline;
using testing::ElementsAre;
using testing::IsEmpty;

/// A pass of `core/passes` has no header of its own: it is declared in pass.h.
std::set<std::string> pass_files() {
  const std::filesystem::path folder = "core/passes";  // tests run in the repository's root
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() == ".cpp" && !exists(folder / (stem + ".h")) &&
        !exists(folder / (stem + "_internal.h"))) {
      names.insert(stem);
    }
  }
  return names;
}

TEST(Pipeline, NamesThePassOfEachFile) {
  std::set<std::string> missing = pass_files();
  EXPECT_GT(missing.size(), 20U);
  for (const Pipeline* const pipeline : passes::pipelines()) {
    for (const Pass& pass : pipeline->passes) missing.erase(std::string(pass.name));
  }
  EXPECT_THAT(missing, IsEmpty()) << "a line in core/passes/pipeline.cpp says when a pass runs";
}

TEST(Pipeline, EachPassHasATestOfItsOwn) {
  // Tested by others: the runtime of control flow, tests/cuda/precision_test.cpp, the sweep.
  std::set<std::string> missing = pass_files();
  for (const char* const elsewhere :
       {"choose_branches", "compute_in_tf32", "decompose", "infer_shapes", "settle"}) {
    missing.erase(elsewhere);
  }
  std::erase_if(missing, [](const std::string& name) {
    return std::filesystem::exists("tests/core/passes/" + name + "_test.cpp");
  });
  EXPECT_THAT(missing, IsEmpty());
}

/// A node more, as long as there are fewer than three.
bool grow(Graph& graph, PassContext& /*context*/) {
  if (graph.node_count() == 3) return false;
  graph.add_node("Relu", "", {graph.inputs().front()}, {graph.unique_name("y")});
  return true;
}

bool do_nothing(Graph& /*graph*/, PassContext& /*context*/) {
  return false;
}

/// The names of the passes that a list runs on a graph of an input alone.
std::vector<std::string> run(std::span<const Pass> list, PassContext context = {.device = cpu()}) {
  test::SmallNet net;
  net.input("x", {2});
  PassLog log;
  context.log = &log;
  run_passes({"list", list}, net.graph, context);
  std::vector<std::string> names;
  for (const passes::PassRecord& record : log.records) names.push_back(record.name);
  return names;
}

TEST(Pipeline, StartsAgainWhileAPassThatSaysSoChangesTheGraph) {
  constexpr Pass kList[] = {
      {"first", do_nothing}, {.name = "grow", .run = grow, .restarts = true}, {"last", do_nothing}};
  EXPECT_THAT(run(kList), ElementsAre("first", "grow", "first", "grow", "first", "grow", "first",
                                      "grow", "last"));
}

TEST(Pipeline, APassMayFollowChangesOnly) {
  constexpr Pass kList[] = {{"grow", grow},
                            {.name = "then", .run = do_nothing, .follows_change = true},
                            {.name = "not then", .run = do_nothing, .follows_change = true}};
  EXPECT_THAT(run(kList), ElementsAre("grow", "then"));
}

TEST(Pipeline, LeavesOutWhatIsForAnotherPurposeOrPrecisionOrUnwanted) {
  constexpr Pass kList[] = {{"always", do_nothing},
                            {"train", do_nothing, passes::Purpose::training},
                            {.name = "bf16", .run = do_nothing, .precision = Precision::bf16}};
  EXPECT_THAT(run(kList), ElementsAre("always"));
  EXPECT_THAT(
      run(kList,
          {.device = cpu(), .purpose = passes::Purpose::training, .precision = Precision::bf16}),
      ElementsAre("always", "train", "bf16"));
  EXPECT_THAT(run(kList, {.device = cpu(), .without = "always"}), IsEmpty());
}

TEST(Pipeline, TellsAWatchWhatChangedAndLeavesOutWhatItNames) {
  constexpr Pass kList[] = {{"idle", do_nothing}, {"grow", grow}, {"last", do_nothing}};
  const passes::PassWatch watch;
  run(kList);
  EXPECT_THAT(watch.changed(), ElementsAre("grow"));
  {
    const passes::PassWatch without("grow");
    EXPECT_THAT(run(kList), ElementsAre("idle", "last"));
    EXPECT_THAT(without.changed(), IsEmpty());
  }
  EXPECT_THAT(run(kList), ElementsAre("idle", "grow", "last"));
}

TEST(Pipeline, RecordsWhatPassesDoAndTheGraphBehindThoseAskedFor) {
  test::SmallNet net;
  const Expr x = net.input("x", {2});
  net.graph.add_output(call("Relu", {x}).value());
  call("Relu", {x});
  PassLog log{.printed = "eliminate_dead",
              .print = [](const Graph& graph) { return print(graph); }};
  PassContext context{.device = cpu(), .log = &log};
  EXPECT_TRUE(passes::run_passes(passes::kUnrolled, net.graph, context));
  EXPECT_TRUE(passes::run_stage("add", net.graph, context, [&] {
    net.graph.add_output(call("Relu", {x}).value());
    return true;
  }));
  std::vector<std::string> lines;
  for (const passes::PassRecord& one : log.records) {
    EXPECT_GE(one.seconds, 0);
    EXPECT_EQ(one.graph.empty(), one.name != "eliminate_dead");
    lines.push_back(text(std::string(2 * static_cast<std::size_t>(one.depth), ' '), one.name, ' ',
                         one.nodes_before, ' ', one.nodes_after, one.changed ? " changed" : ""));
  }
  EXPECT_THAT(lines, ElementsAre("settle 2 1 changed", "  infer_shapes 2 2", "  fold_constants 2 2",
                                 "  choose_branches 2 2", "  eliminate_dead 2 1 changed",
                                 "unroll_loops 1 1", "add 1 2 changed"));
  EXPECT_EQ(log.records[4].graph, R"(net(x: f32[2]) -> (relu: f32[2])
  relu: f32[2] = Relu(x)
)");
}

}  // namespace
}  // namespace graft
