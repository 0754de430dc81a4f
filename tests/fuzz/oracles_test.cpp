// The fuzzers' oracles see a difference where there is one, and none where rounding explains it.
#include "tests/fuzz/models/oracles.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/ops/builder.h"
#include "tests/fuzz/models/optional_passes.h"
#include "tests/fuzz/models/small_models.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// y = op(x + x).
std::unique_ptr<Graph> doubled(std::string_view op) {
  auto graph = std::make_unique<Graph>("g");
  Builder b(*graph);
  Value* const x = graph->add_input("x", {DType::f32, SymShape{3}});
  Value* const sum = b.node("Add", "", {x, x}, 1)->output();
  graph->add_output(b.node(op, "", {sum}, 1)->output());
  return graph;
}

std::vector<Datum> input() {
  return {Tensor::from<float>({3}, {-1, 0.25F, 2})};
}

TEST(Oracles, PlannedAndUnplannedAgree) {
  const Outcome planned = run_planned(*doubled("Relu"), input());
  const Outcome unplanned = run_unplanned(*doubled("Relu"), input());
  ASSERT_TRUE(planned.succeeded && unplanned.succeeded);
  require_same_bits(planned, unplanned, "planned");
  require_near(planned, unplanned, "planned");
  EXPECT_EQ(unplanned.largest, 4);
}

TEST(Oracles, AnotherResultIsAFinding) {
  const Outcome right = run_unplanned(*doubled("Relu"), input());
  const Outcome wrong = run_planned(*doubled("LeakyRelu"), input());
  EXPECT_THROW(require_near(wrong, right, "planned"), Finding);
  EXPECT_THROW(require_same_bits(wrong, right, "planned"), Finding);
}

TEST(Oracles, AFailureOnOneSideIsAFinding) {
  const Outcome right = run_planned(*doubled("Relu"), input());
  EXPECT_THROW(require_same_bits(right, Outcome{}, "poisoned"), Finding);
}

/// y = (x + 1e8) - 1e8.
std::unique_ptr<Graph> rounding() {
  auto graph = std::make_unique<Graph>("g");
  Builder b(*graph);
  Value* const x = graph->add_input("x", {DType::f32, SymShape{3}});
  Value* const far = graph->add_initializer("far", Tensor::full(DType::f32, {3}, 1e8));
  Value* const sum = b.node("Add", "", {x, far}, 1)->output();
  graph->add_output(b.node("Sub", "", {sum, far}, 1)->output());
  return graph;
}

TEST(Oracles, TheReferenceHas64Bits) {
  const Outcome narrow = run_unplanned(*rounding(), input());
  const Outcome wide = run_in_f64(*rounding(), input(), narrow);
  ASSERT_TRUE(wide.succeeded && narrow.succeeded);
  EXPECT_EQ(wide.results[0].tensor().dtype(), DType::f32);
  EXPECT_NEAR(wide.results[0].tensor().values<float>()[1], 0.25, 1e-6);
  EXPECT_EQ(narrow.results[0].tensor().values<float>()[1], 0);
}

TEST(Oracles, PassesThatChangedSomethingAreLeftOutOneByOne) {
  const passes::PassWatch watch;
  const Outcome with = run_planned(*doubled("Relu"), input());
  EXPECT_EQ(optional_passes(watch), std::vector<std::string_view>{"fuse_chains"});
  EXPECT_TRUE(watch.changed().contains("infer_shapes"));
  const passes::PassWatch without("fuse_chains");
  require_same_bits(with, run_planned(*doubled("Relu"), input()), "without chains");
  EXPECT_TRUE(optional_passes(without).empty());
}

TEST(Oracles, KinksAreNotSmooth) {
  EXPECT_TRUE(rounds_only(*doubled("Relu")));
  EXPECT_FALSE(is_smooth(*doubled("Relu")));
  EXPECT_TRUE(is_smooth(*doubled("Tanh")));
}

TEST(Oracles, NothingIsSaidOfNumbersThatLoseDigits) {
  Outcome far = run_unplanned(*doubled("Relu"), input());
  const Outcome other = run_planned(*doubled("LeakyRelu"), input());
  far.largest = 1e6;
  require_near(other, far, "planned");
}

TEST(Oracles, NumbersNearZeroHaveNoReferenceIn64Bits) {
  const std::vector<Datum> tiny{Tensor::from<float>({3}, {1e-30F, 1, 0})};
  EXPECT_FALSE(run_unplanned(*doubled("Relu"), tiny).stays_in_f32());
  EXPECT_TRUE(run_unplanned(*doubled("Relu"), input()).stays_in_f32());
}

TEST(Oracles, OneNaNIsLikeAnother) {
  const Tensor a = Tensor::from<float>({2}, {kNaN, 1});
  const Tensor b = Tensor::from<float>({2}, {-kNaN, 1});
  EXPECT_TRUE(same_bits(a, b));
  EXPECT_FALSE(same_bits(a, Tensor::from<float>({2}, {0, 1})));
  EXPECT_FALSE(same_bits(a, Tensor::from<float>({1}, {kNaN})));
}

TEST(Oracles, RoundingToIntegersIsNoRounding) {
  EXPECT_TRUE(rounds_only(*doubled("Tanh")));
  EXPECT_FALSE(rounds_only(*doubled("Floor")));
  const std::unique_ptr<Graph> wild = doubled("Elu");
  wild->nodes().back()->attributes.set({"alpha", std::numeric_limits<float>::infinity()});
  EXPECT_FALSE(rounds_only(*wild));
}

TEST(Oracles, ErrorsAreAnswersAndNothingElseIs) {
  EXPECT_FALSE(succeeds([] { fail(ErrorKind::shape, "no"); }));
  EXPECT_THROW(succeeds([] { fail(ErrorKind::shape, ""); }), Finding);
  EXPECT_THROW(succeeds([] { throw std::out_of_range("at"); }), std::out_of_range);
}

}  // namespace
}  // namespace graft::fuzz
