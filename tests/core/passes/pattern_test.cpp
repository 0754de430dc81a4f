#include "core/passes/pattern.h"

#include <gtest/gtest.h>

#include "core/passes/match.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

using namespace passes;  // NOLINT(google-build-using-namespace): formulas

/// Values x and y of one shape, and an any() for each.
struct Formula : test::SmallNet {
  bool has(const Expr& value, const Pattern& pattern) {
    return find_match(pattern, *value.value(), nullptr, match);
  }
  Expr read_twice(const Expr& value) {
    graph.add_output(value.value());
    return value;
  }

  Expr x = input("x", {2, 3});
  Expr y = input("y", {2, 3});
  Match match{graph};
  const Pattern a = any();
  const Pattern b = any();
  const Pattern c = any_number();
};

TEST(Pattern, SumsCommuteAndDifferencesDoNot) {
  Formula f;
  EXPECT_TRUE(f.has(f.x + sqrt(f.y), sqrt(f.a) + f.b));
  EXPECT_TRUE(f.has(sqrt(f.y) + f.x, sqrt(f.a) + f.b));
  EXPECT_EQ(f.match[f.a].value(), f.y.value());
  EXPECT_EQ(f.match[f.b].value(), f.x.value());
  EXPECT_TRUE(f.has(sqrt(f.x) - f.y, sqrt(f.a) - f.b));
  EXPECT_FALSE(f.has(f.x - sqrt(f.y), sqrt(f.a) - f.b));
}

TEST(Pattern, QuotientsAreProductsOfReciprocals) {
  Formula f;
  const Pattern quotient = f.a / sqrt(f.b);
  EXPECT_TRUE(f.has(f.x / sqrt(f.y), quotient));
  EXPECT_TRUE(f.has(f.x * (1.0 / sqrt(f.y)), quotient));
  EXPECT_TRUE(f.has(reciprocal(sqrt(f.y)) * f.x, quotient));
  EXPECT_FALSE(f.has(sqrt(f.y) / f.x, quotient));
  EXPECT_FALSE(f.has(f.x * sqrt(f.y), quotient));
  EXPECT_FALSE(f.has(f.x / sqrt(f.y) * 2.0, quotient));
}

TEST(Pattern, ConstantsMayStandAnywhereInAProduct) {
  Formula f;
  const Pattern half = f.a * sqrt(f.b) * 0.5;
  EXPECT_TRUE(f.has(f.x * sqrt(f.y) / 2.0, half));
  EXPECT_TRUE(f.has((f.x * 2.0) * (sqrt(f.y) / 4.0), half));
  EXPECT_EQ(f.match[f.a].value(), f.x.value());
  EXPECT_TRUE(f.has(f.x * 0.500001 * sqrt(f.y), half));
  EXPECT_FALSE(f.has(f.x * sqrt(f.y), half));
  EXPECT_FALSE(f.has(f.x * 0.51 * sqrt(f.y), half));
  const Expr wide = f.builder.expr(f.builder.constant(Tensor::full(DType::f32, {1, 1, 1}, 0.5)));
  EXPECT_FALSE(f.has((f.x * wide) * sqrt(f.y), half));  // has one more axis
}

TEST(Pattern, WholeNumbersAreExact) {
  Formula f;
  EXPECT_TRUE(f.has(pow(f.x, 2.0), square(f.a)));
  EXPECT_TRUE(f.has(f.x * f.x, square(f.a)));
  EXPECT_FALSE(f.has(pow(f.x, 2.00001), square(f.a)));
  EXPECT_FALSE(f.has(f.x * f.y, square(f.a)));
  EXPECT_TRUE(f.has(f.x * (f.x * f.x), cube(f.a)));
}

TEST(Pattern, AFactorTakesInAllConstants) {
  Formula f;
  EXPECT_TRUE(f.has(sqrt(f.x * 3.0 / 2.0), sqrt(scaled(f.a, f.c))));
  EXPECT_EQ(f.match.number(f.c), 1.5);
  EXPECT_EQ(f.match[f.a].value(), f.x.value());
  EXPECT_TRUE(f.has(sqrt(f.x), sqrt(scaled(f.a, f.c))));
  EXPECT_EQ(f.match.number(f.c), 1.0);
  const Expr scaled_x = f.x * 4.0;  // the same value on both sides decides how much is factor
  EXPECT_TRUE(f.has(scaled_x - sqrt(scaled_x * 0.5), f.a - sqrt(scaled(f.a, f.c))));
  EXPECT_EQ(f.match.number(f.c), 0.5);
}

TEST(Pattern, WhatStandsTwiceIsOneValueOrMadeTwice) {
  Formula f;
  const Pattern difference = f.a - f.b;
  const Pattern twice = sqrt(difference) + difference;
  EXPECT_TRUE(f.has(sqrt(f.x - f.y) + (f.x - f.y), twice));
  EXPECT_FALSE(f.has(sqrt(f.x - f.y) + (f.y - f.x), twice));
  EXPECT_FALSE(f.has(sqrt(f.x) + f.y, sqrt(f.a) + f.a));
}

TEST(Pattern, WhatIsReadOnceHidesNothing) {
  Formula f;
  EXPECT_TRUE(f.has(sqrt(f.x) + f.y, once(sqrt(f.a)) + f.b));
  EXPECT_FALSE(f.has(f.read_twice(sqrt(f.x)) + f.y, once(sqrt(f.a)) + f.b));
  const Pattern product = f.b * once(sqrt(f.a)) * 0.5;
  EXPECT_TRUE(f.has(sqrt(f.x) * 0.5 * f.y, product));
  EXPECT_FALSE(f.has(f.read_twice(sqrt(f.x) * 0.5) * f.y, product));
  EXPECT_TRUE(f.has(sqrt(f.x) * f.read_twice(f.y * 0.5), product));
}

TEST(Pattern, PartsMayBeMissing) {
  Formula f;
  const Pattern scale = any();
  const Pattern line = sqrt(f.a) * opt(scale) + opt(f.b);
  EXPECT_TRUE(f.has(sqrt(f.x), line));
  EXPECT_FALSE(f.match.has(scale));
  EXPECT_FALSE(f.match[f.b]);
  EXPECT_TRUE(f.has(f.y + sqrt(f.x) * f.x, line));
  EXPECT_EQ(f.match[scale].value(), f.x.value());
  EXPECT_EQ(f.match[f.b].value(), f.y.value());
  EXPECT_TRUE(f.has(sqrt(f.x) + f.y, line));
  EXPECT_FALSE(f.match.has(scale));
  EXPECT_FALSE(f.has(f.read_twice(sqrt(f.x)) + f.y, line));
  const Expr plain = call("Gemm", {f.x, transpose_last(f.y)});
  EXPECT_TRUE(f.has(plain, op("Gemm", {f.a, f.b, or_none(scale)})));
}

TEST(Pattern, ViewsAndStepsMayStandBetween) {
  Formula f;
  const Pattern shown = f.b + through_views(sqrt(f.a));
  const Expr flat = f.input("flat", {6});
  EXPECT_TRUE(f.has(reshape(reshape(sqrt(f.x), {3, 2}), {6}) + flat, shown));
  EXPECT_FALSE(f.has(reshape(f.read_twice(sqrt(f.x)), {6}) + flat, shown));
  const Pattern path =
      through([](const Node& node, int index) { return node.is("Sub") && index == 1; }, sqrt(f.a));
  EXPECT_TRUE(f.has(sqrt(f.x - (f.y - sqrt(f.y))), sqrt(path)));
  const std::vector<Step> steps = f.match.steps(path);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].node->input(0), f.y.value());
  EXPECT_EQ(steps[1].node->input(0), f.x.value());
  EXPECT_EQ(steps[1].index, 1);
}

TEST(Pattern, LongChainsEndTheSearch) {
  Formula f;
  Expr value = f.x;
  for (int i = 0; i < 100'000; ++i) value = value * 1.0;
  EXPECT_TRUE(f.has(sqrt(value), sqrt(scaled(f.a, f.c))));
  EXPECT_NE(f.match[f.a].value(), f.x.value());
}

TEST(Pattern, AConditionSendsTheSearchOn) {
  Formula f;
  static Value* wanted = nullptr;
  static const Pattern left = any();
  static const Pattern right = any();
  wanted = f.y.value();
  const auto is_wanted = [](const Match& m) { return m[left].value() == wanted; };
  EXPECT_TRUE(find_match(left + right, *(f.x + f.y).value(), is_wanted, f.match));
  EXPECT_EQ(f.match[right].value(), f.x.value());
}

}  // namespace
}  // namespace graft
