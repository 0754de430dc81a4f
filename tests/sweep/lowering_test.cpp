// What rows write in ops of ONNX (OpDef::lower), held against what the kernels compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/ops/evaluate.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"
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

struct Case {
  const OpDef* def;
  Sample sample;
};

/// Shown where a test fails.
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.def->name << " on sample " << one.sample.name;
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (def.lower == nullptr) continue;
    for (Sample& sample : def.samples()) result.push_back({&def, std::move(sample)});
  }
  return result;
}

class LoweringTest : public testing::TestWithParam<Case> {};

TEST_P(LoweringTest, ComputesTheSameInOpsOfOnnx) {
  const auto& [def, sample] = GetParam();
  SampleGraph built = make_sample_graph(*def, sample, DType::f64);
  std::unique_ptr<Graph> lowered = built.graph->clone();
  try {
    passes::lower(*lowered);
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), ErrorKind::unsupported);
    GTEST_SKIP() << error.what();
  }
  passes::infer_shapes(*lowered);
  EXPECT_FALSE(has_internal_nodes(*lowered));
  const Tensors wanted = evaluate(*built.node, built.node_inputs);
  const Tensors found = run(std::move(lowered), built.graph_inputs);
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

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(info.param.def->name) + "_" + info.param.sample.name;
}

INSTANTIATE_TEST_SUITE_P(Lowering, LoweringTest, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace graft::test
