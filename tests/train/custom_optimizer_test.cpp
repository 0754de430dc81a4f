// Optimizers written as formulas, beside those of Graft.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/layers/nets.h"
#include "optim/update.h"
#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using State = std::vector<Expr>;

/// b = momentum*b + g; p -= lr*b.
CustomOptimizer momentum_formula(float lr) {
  return {.lr = lr,
          .state = {"momentum"},
          .step = [](const Expr& p, const Expr& g, const Expr& rate, const Expr& /*t*/,
                     const State& state) -> Update {
            const Expr b = state[0] * 0.9 + g;
            return {p - rate * b, {b}};
          }};
}

Expr power(double base, const Expr& exponent) {
  return call("Pow", {constant_like(exponent, base), exponent});
}

/// Adam, as core/ops/train/update_cpu.cpp writes it.
CustomOptimizer adam_formula(float lr) {
  return {.lr = lr,
          .state = {"mean", "square"},
          .step = [](const Expr& p, const Expr& g, const Expr& rate, const Expr& t,
                     const State& state) -> Update {
            constexpr double kBeta1 = 0.9F;
            constexpr double kBeta2 = 0.999F;
            const Expr m = state[0] * kBeta1 + g * (1.0 - kBeta1);
            const Expr v = state[1] * kBeta2 + g * (1.0 - kBeta2) * g;
            const Expr scaled = cast(cast(rate, DType::f64) / (1.0 - power(kBeta1, t)), p.dtype());
            const Expr root = cast(1.0 / sqrt(1.0 - power(kBeta2, t)), p.dtype());
            return {p - scaled * m / (sqrt(v) * root + 1e-8), {m, v}};
          }};
}

struct Trained {
  Model model;
  std::vector<float> losses;
  std::string plan;
  std::size_t arena_bytes;
};

/// A LeNet after so many steps on batches of changing size.
Trained train(TrainOptions options, int steps = 12) {
  Trained result{.model = make_net("lenet", {1, 28, 28}, 10, /*seed=*/3)};
  TrainStep step(result.model, std::move(options));
  for (int i = 0; i < steps; ++i) {
    const std::int64_t size = i % 3 == 2 ? 5 : 8;
    result.losses.push_back(
        step.run({test::random_tensor({size, 1, 28, 28}, i % 4)}, test::cyclic_labels(size, 10)));
  }
  result.plan = step.describe();
  result.arena_bytes = step.arena_bytes();
  return result;
}

/// The largest difference of two models' parameters.
double distance(const Model& a, const Model& b) {
  double most = 0.0;
  for (const Value* value : a.graph().initializers()) {
    const Value* const other = b.graph().find(value->name());
    if (value->dtype() != DType::f32) continue;
    const auto x = value->initializer().values<const float>();
    const auto y = other->initializer().values<const float>();
    for (std::size_t i = 0; i < x.size(); ++i) most = std::max<double>(most, std::abs(x[i] - y[i]));
  }
  return most;
}

TEST(CustomOptimizer, MomentumIsThatOfSgd) {
  const Trained formula = train({.optimizer = momentum_formula(0.01F)});
  const Trained built_in = train({.optimizer = SGD{.lr = 0.01F, .momentum = 0.9F}});
  EXPECT_LT(distance(formula.model, built_in.model), 2e-7);
  EXPECT_LT(formula.losses.back(), formula.losses.front());
}

TEST(CustomOptimizer, AdamIsAdam) {
  // The 11th step meets a gradient next to nothing. Adam divides it by its own size, so that its
  // last bits count as much as others' first: two orders of summing may end 5e-6 apart.
  constexpr int kSteps = 10;
  const Trained formula = train({.optimizer = adam_formula(1e-3F)}, kSteps);
  const Trained built_in = train({.optimizer = Adam{.lr = 1e-3F}}, kSteps);
  EXPECT_LT(distance(formula.model, built_in.model), 2e-7);
}

/// One node a parameter, which writes parameter and state where they lie.
TEST(CustomOptimizer, WritesInPlace) {
  const Trained formula = train({.optimizer = adam_formula(1e-3F)});
  EXPECT_THAT(formula.plan, HasSubstr("UpdateChain"));
  EXPECT_THAT(formula.plan, Not(HasSubstr("Assign")));
  // Graft's Adam takes the gradient of fc1.weight, f32[500,800], piece by piece from its product.
  constexpr std::size_t kWholeGradient = 500 * 800 * sizeof(float);
  EXPECT_LE(formula.arena_bytes, train({.optimizer = Adam{}}).arena_bytes + kWholeGradient);
}

TEST(CustomOptimizer, TakesMeanGradientsOfMicroBatchesThatAreClipped) {
  const TrainOptions common{.clip = {.norm = 0.5F}, .accumulate = 2};
  TrainOptions one = common;
  one.optimizer = momentum_formula(0.01F);
  TrainOptions other = common;
  other.optimizer = SGD{.lr = 0.01F, .momentum = 0.9F};
  EXPECT_LT(distance(train(one).model, train(other).model), 2e-7);
}

TEST(CustomOptimizer, ReadsNoMemoryBeforeItIsWritten) {
  const Trained clean = train({.optimizer = adam_formula(1e-3F)});
  const Trained poisoned = train({.optimizer = adam_formula(1e-3F), .poison = true});
  EXPECT_EQ(clean.losses, poisoned.losses);
  EXPECT_EQ(distance(clean.model, poisoned.model), 0.0);
}

/// What is no chain: a step divided by its norm, and a state that is the old parameter.
TEST(CustomOptimizer, MayReduceAndKeepWhatAParameterWas) {
  Model model = test::linear_model();
  const Tensor before = model.graph().find("w")->initializer().clone();
  TrainStep step(
      model, {.loss = mse(),
              .optimizer = CustomOptimizer{.lr = 0.1F,
                                           .state = {"before"},
                                           .step = [](const Expr& p, const Expr& g, const Expr& lr,
                                                      const Expr& /*t*/, const State&) -> Update {
                                             const Expr norm = sqrt(reduce_sum(g * g, {}, false));
                                             return {p - lr * g / norm, {p}};
                                           }},
              .trainable = "w"});
  step.run({test::random_tensor({4, 2}, 1)}, Tensor::zeros(DType::f32, {4, 2}));
  const auto now = model.graph().find("w")->initializer().values<const float>();
  double moved = 0.0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    moved += std::pow(now[i] - before.values<const float>()[i], 2);
  }
  EXPECT_NEAR(std::sqrt(moved), 0.1, 1e-6);
  EXPECT_EQ(step.state_bytes(), before.bytes());
}

/// Names that begin as another one, or as what the step keeps itself.
TEST(CustomOptimizer, StateMayBeCalledAlmostAnything) {
  const auto formula = [](std::vector<std::string> names) {
    const std::size_t count = names.size();
    return CustomOptimizer{.lr = 0.1F,
                           .state = std::move(names),
                           .step = [=](const Expr& p, const Expr& g, const Expr& lr,
                                       const Expr& /*t*/, const State& /*state*/) -> Update {
                             return {p - lr * g, std::vector<Expr>(count, g)};
                           }};
  };
  Model model = test::linear_model();
  const TrainOptions options{.loss = mse(),
                             .optimizer = formula({"square", "square_max", "averages", "square_1"}),
                             .ema = 0.9F};
  TrainStep step(model, options);
  const auto run = [&] {
    step.run({test::random_tensor({4, 2}, 1)}, Tensor::zeros(DType::f32, {4, 2}));
  };
  run();
  EXPECT_NO_THROW(step.load_state(clone(step.state())));
  EXPECT_NO_THROW(run());
  for (const char* name : {"average", "accumulated", "master"}) {
    testing::expect_error(ErrorKind::argument, text("state is called '", name), [&] {
      check(formula({"square", name}));
    });
  }
}

}  // namespace
}  // namespace graft
