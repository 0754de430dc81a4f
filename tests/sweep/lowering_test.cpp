// What rows write in ops of ONNX (OpDef::lower), held against what the kernels compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "core/ops/evaluate.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"
#include "tests/sweep/sample_case.h"
#include "tests/sweep/sample_graph.h"

namespace graft::test {
namespace {

using Tensors = std::vector<Tensor>;

Tensors run(std::unique_ptr<Graph> graph, const Tensors& inputs) {
  Plan plan(std::move(graph), {});
  plan.run(inputs);
  Tensors outputs;
  for (int i = 0; i < plan.output_count(); ++i) outputs.push_back(plan.output(i).clone());
  return outputs;
}

bool has_internal_nodes(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(),
                             [](const auto& node) { return node->domain() == kInternalDomain; });
}

/// Large errors of few elements would hide among many small ones, so each counts.
void expect_close(const Tensor& found, const Tensor& wanted, double relative) {
  ASSERT_EQ(found.shape(), wanted.shape());
  ASSERT_EQ(found.dtype(), wanted.dtype());
  const std::vector<double> a = to_double(found);
  const std::vector<double> b = to_double(wanted);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_NEAR(a[i], b[i], relative * (1.0 + std::abs(b[i]))) << "element " << i;
  }
}

bool is_lowered(const OpDef& def) {
  return def.lower != nullptr;
}

/// In ops of ONNX; null, with the reason in `refusal`, where the row writes no such node.
std::unique_ptr<Graph> lowered(const SampleGraph& sample, std::string& refusal) {
  std::unique_ptr<Graph> graph = sample.graph->clone();
  try {
    passes::lower(*graph);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    refusal = error.what();
    return nullptr;
  }
  passes::infer_shapes(*graph);
  return graph;
}

class LoweringTest : public testing::TestWithParam<SampleCase> {};

TEST_P(LoweringTest, ComputesTheSameInOpsOfOnnx) {
  const auto& [def, sample] = GetParam();
  SampleGraph built = make_sample_graph(*def, sample, DType::f64);
  std::string refusal;
  std::unique_ptr<Graph> graph = lowered(built, refusal);
  if (graph == nullptr) GTEST_SKIP() << refusal;
  EXPECT_FALSE(has_internal_nodes(*graph));
  const Tensors wanted = evaluate(*built.node, built.node_inputs);
  const Tensors found = run(std::move(graph), built.graph_inputs);
  std::size_t at = 0;
  for (const Tensor& output : wanted) {
    if (!output.defined()) continue;
    SCOPED_TRACE(at);
    // Samples that allow more than f32 does store bf16.
    constexpr double kOfDoubles = 1e-9;
    const bool is_stored_short = sample.relative > 1e-3;
    expect_close(found.at(at++), output, is_stored_short ? sample.relative : kOfDoubles);
  }
  EXPECT_EQ(at, found.size());
}

/// Else a step with that optimizer could not be exported.
TEST(Lowering, IsThereForEachUpdate) {
  for (const OpDef& def : OpRegistry::instance().all()) {
    EXPECT_TRUE(def.product_form.op.empty() || is_lowered(def)) << def.name;
  }
}

/// Else it would pass above by being skipped.
TEST(Lowering, WritesAtLeastOneSampleOfEachOp) {
  std::set<std::string_view> written;
  for (const auto& [def, sample] : sample_cases(is_lowered)) {
    std::string refusal;
    if (lowered(make_sample_graph(*def, sample, DType::f64), refusal)) written.insert(def->name);
  }
  for (const OpDef& def : OpRegistry::instance().all()) {
    EXPECT_EQ(is_lowered(def), written.contains(def.name)) << def.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Lowering, LoweringTest, testing::ValuesIn(sample_cases(is_lowered)),
                         case_name);

}  // namespace
}  // namespace graft::test
