// A NaN or an infinity in a run is laid at the door of the node that made it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/layers/nets.h"
#include "core/ops/builder.h"
#include "core/runtime/nan_watch.h"
#include "tests/core/error_of.h"
#include "tests/train/nets.h"
#include "train/trainer.h"

namespace graft {
namespace {

using ::testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Of opset 21, whose output is the value that `make` gives for the input x f32[N,2].
template <class Make>
Model net(Make&& make) {
  Model model;
  model.set_opset("", 21);
  Graph& graph = model.graph();
  Builder b(graph);
  graph.add_output(make(b, graph.add_input("x", {DType::f32, SymShape{Dim("N"), Dim(2)}})));
  return model;
}

/// y = log(x w) w2: a NaN where x w is negative, minus infinity where it is zero.
Model planted() {
  return net([](Builder& b, Value* x) {
    Graph& graph = b.graph();
    Value* const w = graph.add_initializer("w", Tensor::full(DType::f32, {2, 2}, 1));
    Value* const v = graph.add_initializer("v", Tensor::full(DType::f32, {2, 1}, 1));
    Value* const h = b.node("MatMul", "", {x, w}, std::vector<std::string>{"h"})->output();
    Node* const log = b.node("Log", "", {h}, std::vector<std::string>{"l"});
    log->set_name("planted_log");
    Value* const r = b.node("Relu", "", {log->output()}, std::vector<std::string>{"r"})->output();
    return b.node("MatMul", "", {r, v}, std::vector<std::string>{"y"})->output();
  });
}

TrainOptions options(bool debug_nan) {
  return {.loss = mse(), .optimizer = SGD{.lr = 0.01F}, .debug_nan = debug_nan};
}

/// What a step on one sample says, or nothing.
std::string said_of(float a, float b) {
  Model model = planted();
  TrainStep step(model, options(true));
  try {
    step.run({Tensor::from<float>({1, 2}, {a, b})}, Tensor::zeros(DType::f32, {1, 1}));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    return error.what();
  }
  return {};
}

TEST(DebugNan, NamesTheNodeThatMadeTheFirst) {
  const std::string said = said_of(-3, 1);
  EXPECT_THAT(said, HasSubstr("Log node 'planted_log' ("));
  EXPECT_THAT(said,
              HasSubstr("made the first NaN: 'l' f32[1,2], 2 NaN, from 'h' f32[1,2] in [-2, -2]"));
}

TEST(DebugNan, NamesTheInfinityThatANaNCameOf) {
  // log 0 is minus infinity; Relu's 0 hides it, and its slope 0 times 1/0 is the NaN.
  const std::string said = said_of(-1, 1);
  EXPECT_THAT(said, HasSubstr("made the first NaN"));
  EXPECT_THAT(said, HasSubstr("before it, Log node 'planted_log'"));
  EXPECT_THAT(said, HasSubstr("made the first infinity: 'l' f32[1,2], 2 infinite, from 'h'"));
}

TEST(DebugNan, NamesTheInfinityThatReachesTheLoss) {
  const std::string said = said_of(1e30F, 1e30F);
  EXPECT_EQ(said, "");  // log of it is 69.8
  Model model = planted();
  TrainStep step(model, options(true));
  const Tensor target = Tensor::full(DType::f32, {1, 1}, 1e30);
  const Error error = error_of([&] { step.run({Tensor::full(DType::f32, {1, 2}, 1)}, target); });
  EXPECT_EQ(error.kind(), ErrorKind::numeric);
  EXPECT_THAT(error.what(), HasSubstr("made the first infinity"));
  EXPECT_THAT(error.what(), HasSubstr("in [-1e+30, -1e+30]"));
}

TEST(DebugNan, NamesWhatIsGivenAsNaN) {
  EXPECT_THAT(said_of(kNaN, 1), HasSubstr("'x' f32[1,2] in [1, 1], 1 NaN, which MatMul node"));
  Model model = planted();
  model.graph().find("v")->set_initializer(Tensor::from<float>({2, 1}, {1, kNaN}));
  TrainStep step(model, options(true));
  const Error error = error_of([&] {
    step.run({Tensor::full(DType::f32, {1, 2}, 1)}, Tensor::zeros(DType::f32, {1, 1}));
  });
  EXPECT_EQ(error.kind(), ErrorKind::numeric);
  EXPECT_THAT(error.what(), HasSubstr("'v' f32[2,1] in [1, 1], 1 NaN, which MatMul node"));
  EXPECT_THAT(error.what(), HasSubstr("comes from the data or the weights"));
}

/// y = where(isnan(x), 0, x) w: what is missing counts as 0.
Model with_missing() {
  return net([](Builder& b, Value* x) {
    Graph& graph = b.graph();
    Value* const w = graph.add_initializer("w", Tensor::full(DType::f32, {2, 1}, 1));
    Value* const zero = graph.add_initializer("zero", Tensor::scalar(0.0F));
    Value* const missing = b.node("IsNaN", "", {x}, 1)->output();
    Value* const known = b.node("Where", "", {missing, zero, x}, 1)->output();
    return b.node("MatMul", "", {known, w}, std::vector<std::string>{"y"})->output();
  });
}

TEST(DebugNan, ANaNThatTheNetTakesIsMeant) {
  Model model = with_missing();
  TrainStep step(model, options(true));
  const Tensor x = Tensor::from<float>({1, 2}, {kNaN, 3});
  EXPECT_EQ(step.run({x}, Tensor::zeros(DType::f32, {1, 1})), 9);
}

TEST(DebugNan, ChangesNothingWhereAllIsFinite) {
  Model plain = make_net("lenet", {1, 28, 28}, 10, 3);
  Model watched = make_net("lenet", {1, 28, 28}, 10, 3);
  TrainStep a(plain, {});
  TrainStep b(watched, {.debug_nan = true});
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const Tensor images = test::random_tensor({4, 1, 28, 28}, seed);
    EXPECT_EQ(a.run({images}, test::cyclic_labels(4, 10)),
              b.run({images}, test::cyclic_labels(4, 10)));
  }
  const std::vector<Tensor> of_a = test::snapshot(plain);
  const std::vector<Tensor> of_b = test::snapshot(watched);
  for (std::size_t i = 0; i < of_a.size(); ++i) EXPECT_TRUE(equal_bits(of_a[i], of_b[i])) << i;
}

TEST(DebugNan, RangesLeaveOutWhatIsNotFinite) {
  const NumberRange range = number_range(Tensor::from<float>({5}, {3, kNaN, -kInfinity, -2, 1}));
  EXPECT_EQ(range.least, -2);
  EXPECT_EQ(range.greatest, 3);
  EXPECT_EQ(range.nans, 1);
  EXPECT_EQ(range.infinities, 1);
  const NumberRange of_double = number_range(Tensor::from<double>({1}, {1e300}));
  EXPECT_EQ(of_double.greatest, 1e300);
  const NumberRange none = number_range(Tensor::from<std::int64_t>({1}, {1}));
  EXPECT_GT(none.least, none.greatest);
}

}  // namespace
}  // namespace graft
