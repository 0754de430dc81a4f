// A tensor may have 2^41 rows of no element. No kernel counts them: each op comes to an end.
#include <gtest/gtest.h>

#include "core/runtime/program.h"
#include "tests/sweep/sample_case.h"
#include "tests/sweep/sample_graph.h"

#if defined(__SANITIZE_ADDRESS__)
/// Results that no machine has room for are an Error there too, and end no program.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
#endif

namespace graft::test {
namespace {

constexpr std::int64_t kRows = std::int64_t{1} << 41;

bool has_rows(const Sample& sample) {
  return !sample.inputs.empty() && !sample.inputs.front().is_constant &&
         sample.inputs.front().shape.rank() >= 2;
}

/// The sample with all inputs of the first one's shape having these many entries along the first
/// and the last axis.
Sample with_dims(Sample sample, std::int64_t first, std::int64_t last) {
  const Shape shape = sample.inputs.front().shape;
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.front() = first;
  dims.back() = last;
  for (SampleInput& input : sample.inputs) {
    if (input.is_constant || input.shape != shape) continue;
    input.shape = Shape(dims);
    input.values.clear();
  }
  return sample;
}

/// By a result or by an Error: other inputs have other shapes, or a result has too many elements.
void run(const OpDef& def, const Sample& sample) {
  try {
    const SampleGraph built = make_sample_graph(def, sample, DType::f32);
    Program program(built.graph->clone(), {});
    program.run(std::vector<Datum>(built.graph_inputs.begin(), built.graph_inputs.end()));
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()), "");
  }
}

class EmptyRowsTest : public testing::TestWithParam<SampleCase> {};

TEST_P(EmptyRowsTest, End) {
  run(*GetParam().def, with_dims(GetParam().sample, kRows, 0));
  run(*GetParam().def, with_dims(GetParam().sample, 0, kRows));
}

/// Files name no internal op, and those trust the shapes that gradients give them.
std::vector<SampleCase> cases_with_rows() {
  std::vector<SampleCase> cases =
      sample_cases([](const OpDef& def) { return def.domain != kInternalDomain; });
  std::erase_if(cases, [](const SampleCase& one) { return !has_rows(one.sample); });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(EmptyRows, EmptyRowsTest, testing::ValuesIn(cases_with_rows()), case_name);

}  // namespace
}  // namespace graft::test
