// Sin, Cos and Tan of numbers that other samples leave out: large ones, whose place on the circle
// hangs on digits of 2 / pi far behind the point.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/ops/builder.h"
#include "core/runtime/plan.h"
#include "tests/cuda/on_card.h"

namespace graft {
namespace {

std::vector<float> angles() {
  std::vector<float> found{0.0F,       -0.0F,      2e-38F,      0.78539816F, 0.7853982F, 1.5707963F,
                           3.1415927F, 6.2831855F, 16367174.0F, 1e10F,       3.4e38F};
  for (float x = 0.7F; x < 3e38F; x *= 1.37F) found.push_back(x);
  const std::size_t count = found.size();
  for (std::size_t i = 0; i < count; ++i) found.push_back(-found[i]);
  return found;
}

std::vector<double> on_card(const char* op, const std::vector<float>& x) {
  const auto count = static_cast<std::int64_t>(x.size());
  auto graph = std::make_unique<Graph>("one");
  Value* const input = graph->add_input("x", {DType::f32, SymShape({count})});
  Builder builder(*graph);
  graph->add_output(builder.node(op, "", {input}, 1)->output());
  Plan plan(std::move(graph), {.device = &test::card()});
  plan.run({{Tensor::from({count}, x)}});
  return to_double(plan.output(0).to(cpu()));
}

TEST(Trigonometry, IsRightToTheLastBitsForAllNumbers) {
  const std::vector<float> x = angles();
  struct Case {
    const char* op;
    double (*wanted)(double);
  };
  for (const Case& one : {Case{"Sin", std::sin}, Case{"Cos", std::cos}, Case{"Tan", std::tan}}) {
    const std::vector<double> y = on_card(one.op, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double wanted = one.wanted(static_cast<double>(x[i]));
      EXPECT_NEAR(y[i], wanted, 4e-7 * std::abs(wanted)) << one.op << " of " << x[i];
    }
  }
}

TEST(Trigonometry, OfWhatIsNoPlaceOnTheCircleIsNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  for (const char* op : {"Sin", "Cos", "Tan"}) {
    for (const double y : on_card(op, x)) EXPECT_TRUE(std::isnan(y)) << op;
  }
}

}  // namespace
}  // namespace graft
