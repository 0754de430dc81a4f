// Recurrent layers that are written time by time, held against the kernels on all their samples.
#include "core/ops/unroll_recurrent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/evaluate.h"
#include "core/ops/registry.h"
#include "core/passes/unroll_recurrent.h"
#include "core/runtime/plan.h"
#include "tests/sweep/sample_case.h"
#include "tests/sweep/sample_graph.h"

namespace graft::test {
namespace {

bool recurs(const OpDef& def) {
  return def.domain.empty() && (def.name == "LSTM" || def.name == "GRU" || def.name == "RNN");
}

class UnrollTest : public testing::TestWithParam<SampleCase> {};

TEST_P(UnrollTest, ComputesTheSame) {
  const auto& [def, sample] = GetParam();
  const SampleGraph built = make_sample_graph(*def, sample, DType::f64);
  std::unique_ptr<Graph> graph = built.graph->clone();
  ASSERT_TRUE(passes::unroll_recurrent(*graph));
  for (const auto& node : graph->nodes()) EXPECT_FALSE(is_recurrent(*node));
  Plan plan(std::move(graph), {});
  plan.run(built.graph_inputs);
  int at = 0;
  for (const Tensor& output : evaluate(*built.node, built.node_inputs)) {
    if (!output.defined()) continue;
    const std::vector<double> wanted = to_double(output);
    const std::vector<double> found = to_double(plan.output(at));
    ASSERT_EQ(plan.output(at).shape(), output.shape());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // Attributes are f32.
      ASSERT_NEAR(found[i], wanted[i], 1e-8 * (1 + std::abs(wanted[i]))) << at << ' ' << i;
    }
    ++at;
  }
  EXPECT_EQ(at, plan.output_count());
}

INSTANTIATE_TEST_SUITE_P(Unroll, UnrollTest, testing::ValuesIn(sample_cases(recurs)), case_name);

}  // namespace
}  // namespace graft::test
