// What the samples of every differentiable op must reach. Each property below is one test, named
// Coverage/RowTest.<Property>/<op>; where it has no meaning for an op, kExceptions says why.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/ops/registry.h"
#include "tests/sweep/sample_coverage.h"

namespace graft::test {
namespace {

struct Exception {
  std::string_view op;
  /// "empty", "one", "broadcast", or the name of an attribute.
  std::string_view what;
  std::string_view why;
};

constexpr std::string_view kSteps = "the result moves in steps; the samples check values alone";

/// What the samples whose gradient is checked need not reach.
constexpr std::array kExceptions{
    Exception{"Cast", "to", "differences see the rounding of all types but f64"},
    Exception{"Cast", "saturate", kSteps},
    Exception{"Cast", "round_mode", kSteps},
    Exception{"CastLike", "saturate", kSteps},
    Exception{"CastLike", "round_mode", kSteps},
    Exception{"Bernoulli", "seed", kSteps},
};

struct Modes {
  std::string_view attribute;
  std::vector<std::string> values;
  /// Of these ops; of all that have the attribute when empty.
  std::vector<std::string_view> ops = {};
};

/// All that a text may be. An attribute that is not here fails the test.
const std::vector<Modes>& modes() {
  static const std::vector<Modes> all{
      {"auto_pad", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}},
      {"activation", {"none", "silu", "swish"}},
      {"approximate", {"none", "tanh"}},
      {"coordinate_transformation_mode",
       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_crop_and_resize"},
       {"Resize"}},
      {"coordinate_transformation_mode", {"half_pixel", "output_half_pixel"}, {"RoiAlign"}},
      {"direction", {"forward", "reverse", "bidirectional"}},
      {"keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"}},
      {"mode", {"DCR", "CRD"}, {"DepthToSpace", "SpaceToDepth"}},
      {"mode", {"avg", "max"}, {"RoiAlign"}},
      {"mode", {"constant", "reflect", "edge", "wrap"}, {"Pad"}},
      {"mode", {"linear", "circular"}, {"TensorScatter"}},
      {"mode", {"nearest", "linear"}, {"Upsample"}},
      {"mode", {"nearest", "linear", "cubic"}, {"Resize", "GridSample"}},
      {"mode", {"standard", "nesterov"}, {"Momentum"}},
      {"nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
      {"padding_mode", {"zeros", "border", "reflection"}},
      {"reduction", {"none", "add", "mul", "max", "min"}, {"ScatterElements", "ScatterND"}},
      {"reduction",
       {"none", "sum", "mean"},
       {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}},
      {"update_rule", {"linear", "gated", "delta", "gated_delta"}},
  };
  return all;
}

bool is_excepted(const OpDef& def, std::string_view what) {
  return std::ranges::any_of(
      kExceptions, [&](const Exception& one) { return one.op == def.name && one.what == what; });
}

/// Texts that are no choice among a few, or that go on to an op whose samples choose.
bool is_free_text(const OpDef& def, std::string_view attribute) {
  const bool hands_on = def.name == "ConvInteger" || def.name == "QLinearConv";
  return attribute == "equation" || hands_on || is_excepted(def, attribute);
}

void expect_covered(const OpDef& def, std::string_view what, bool is_covered,
                    const std::string& missing) {
  if (is_excepted(def, what)) {
    EXPECT_FALSE(is_covered) << def.name << ": no exception for '" << what << "' is needed";
  } else {
    EXPECT_TRUE(is_covered) << def.name << ": " << missing;
  }
}

class RowTest : public testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& def() const { return *GetParam(); }
  const SampleCoverage coverage_{*GetParam()};
};

std::vector<const OpDef*> differentiable_rows() {
  std::vector<const OpDef*> rows;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (def.backward.refusal() == nullptr && !def.samples().empty()) rows.push_back(&def);
  }
  return rows;
}

TEST_P(RowTest, HasASampleWithoutElements) {
  expect_covered(def(), "empty", coverage_.has_dim(0), "no sample with a dim of 0");
}

TEST_P(RowTest, HasASampleWithADimOfOne) {
  expect_covered(def(), "one", coverage_.has_dim(1), "no sample with a dim of 1");
}

TEST_P(RowTest, BroadcastsEachInput) {
  if (def().domain == kInternalDomain) GTEST_SKIP() << "rules give internal ops whole shapes";
  const std::set<int> covered = coverage_.broadcast();
  std::string missing;
  for (const int input : coverage_.broadcastable()) {
    if (!covered.contains(input)) missing += text(" ", input);
  }
  expect_covered(def(), "broadcast", missing.empty(), "no sample broadcasts input" + missing);
}

TEST_P(RowTest, ChangesEachAttribute) {
  for (const AttributeDef& attribute : def().attributes) {
    if (!is_current(def(), attribute.name)) continue;  // of an older form: upgraded away
    expect_covered(def(), attribute.name, coverage_.values(attribute).size() > 1,
                   text("samples give attribute '", attribute.name, "' one value"));
  }
}

TEST_P(RowTest, ReachesEachMode) {
  if (def().domain == kInternalDomain) GTEST_SKIP() << "it has the modes of the op it belongs to";
  for (const AttributeDef& attribute : def().attributes) {
    if (attribute.type != AttributeType::text || is_free_text(def(), attribute.name)) continue;
    const auto found = std::ranges::find_if(modes(), [&](const Modes& one) {
      return one.attribute == attribute.name &&
             (one.ops.empty() || std::ranges::find(one.ops, def().name) != one.ops.end());
    });
    ASSERT_NE(found, modes().end()) << "which values has '" << attribute.name << "'?";
    const std::set<std::string> covered = coverage_.values(attribute);
    for (const std::string& value : found->values) {
      EXPECT_TRUE(covered.contains(value)) << "no sample with " << attribute.name << " " << value;
    }
  }
}

/// Updates have no gradient to check; their settings count all the same.
TEST(Coverage, SamplesOfUpdatesChangeEachAttribute) {
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (!def.updates_state() || def.domain != kInternalDomain || def.samples().empty()) continue;
    const SampleCoverage coverage(def);
    for (const AttributeDef& attribute : def.attributes) {
      EXPECT_GT(coverage.values(attribute).size(), 1U)
          << def.name << ": samples give attribute '" << attribute.name << "' one value";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Coverage, RowTest, testing::ValuesIn(differentiable_rows()),
                         [](const auto& row) { return std::string(row.param->name); });

}  // namespace
}  // namespace graft::test
