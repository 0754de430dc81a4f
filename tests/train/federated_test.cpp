// What federated training exchanges: parameters as one vector, and deltas.
#include "train/federated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/data/test_files.h"
#include "tests/train/nets.h"
#include "tests/train/parallel_nets.h"
#include "train/train_step.h"

namespace graft::federated {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::expect_error;
using ::testing::FloatEq;
using ::testing::Not;

std::vector<float> numbers(const Tensor& tensor) {
  const auto values = tensor.values<const float>();
  return {values.begin(), values.end()};
}

Tensor vector_of(std::vector<float> values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return Tensor::from(shape, values);
}

TEST(FlatParameters, AreElementsInTheOrderOfNames) {
  Model model = test::linear_model();
  FlatParameters flat(model, {"b", "w"});
  EXPECT_EQ(flat.size(), 6);
  EXPECT_THAT(numbers(flat.get()), ElementsAre(0.5F, -0.5F, 1, 2, 3, 4));
  flat.set(vector_of({9, 8, 7, 6, 5, 4}));
  EXPECT_THAT(numbers(model.graph().find("b")->initializer()), ElementsAre(9, 8));
  EXPECT_THAT(numbers(model.graph().find("w")->initializer()), ElementsAre(7, 6, 5, 4));
  EXPECT_THAT(numbers(flat.delta(vector_of({9, 8, 0, 0, 0, 1}))), ElementsAre(0, 0, 7, 6, 5, 3));
}

TEST(FlatParameters, TakeWhatFits) {
  Model model = test::linear_model();
  expect_error(ErrorKind::argument, "no initializer 'x'", [&] { FlatParameters(model, {"x"}); });
  expect_error(ErrorKind::argument, "'w' stands twice", [&] {
    FlatParameters(model, {"w", "b", "w"});
  });
  expect_error(ErrorKind::argument, "at least one", [&] { FlatParameters(model, {}); });
  FlatParameters flat(model, {"w", "b"});
  expect_error(ErrorKind::shape, "found f32[5], wanted f32[6]", [&] {
    flat.set(vector_of({1, 2, 3, 4, 5}));
  });
  expect_error(ErrorKind::shape, "found i64[6], wanted f32[6]",
               [&] { flat.set(Tensor::zeros(DType::i64, Shape{6})); });
  model.graph().add_initializer("d", Tensor::zeros(DType::f64, Shape{2}));
  expect_error(ErrorKind::type, "'d' is f64[2], wanted f32", [&] {
    FlatParameters(model, {"w", "d"});
  });
}

TEST(FlatParameters, RefuseShapesThatHaveChanged) {
  Model model = test::linear_model();
  FlatParameters flat(model, {"w", "b"});
  const Tensor before = flat.get();
  Graph& graph = model.graph();
  for (const std::int64_t size : {1, 3}) {
    Value* const old = graph.find("b");
    graph.rename(old, graph.unique_name("old"));
    Value* const fresh = graph.add_initializer("b", Tensor::zeros(DType::f32, Shape{size}));
    graph.replace_all_uses(old, fresh);
    const std::string part = text("'b' is f32[", size, "] since the graph was edited");
    expect_error(ErrorKind::shape, part, [&] { flat.get(); });
    expect_error(ErrorKind::shape, part, [&] { flat.set(Tensor::zeros(DType::f32, Shape{6})); });
    expect_error(ErrorKind::shape, part, [&] { flat.delta(before); });
    EXPECT_THAT(numbers(graph.find("w")->initializer()), ElementsAre(1, 2, 3, 4));
  }
}

// A client goes on with what the server sends, in plans that there are already.
TEST(FlatParameters, AStepStartsFromWhatIsSet) {
  Model model = test::small_net(false);
  TrainStep step(model, {.optimizer = SGD{.lr = 0.1F}});
  FlatParameters flat(model, step.changed_names());
  const Tensor start = flat.get();
  const Batch batch = test::part(0, alone());
  const float first = step.run(batch.inputs, batch.target);
  const Tensor once = flat.get();
  EXPECT_NE(step.run(batch.inputs, batch.target), first);
  flat.set(start);
  EXPECT_TRUE(equal_bits(flat.get(), start));
  EXPECT_EQ(step.run(batch.inputs, batch.target), first);
  EXPECT_TRUE(equal_bits(flat.get(), once));
}

TEST(FlatParameters, MayHoldStatistics) {
  Model model = test::small_net(true);
  const TrainStep step(model, {.optimizer = SGD{.lr = 0.1F}});
  EXPECT_THAT(step.changed_names(), Contains("bn.running_var"));
  EXPECT_THAT(step.changed_names(false), Not(Contains("bn.running_var")));
  EXPECT_EQ(step.changed_names(false), step.parameter_names());
}

TEST(Deltas, AreClippedByTheirNorm) {
  const Tensor delta = vector_of({3, 0, -4});
  EXPECT_THAT(numbers(clipped(delta, 5)), ElementsAre(3, 0, -4));
  EXPECT_THAT(numbers(clipped(delta, 2.5)), ElementsAre(1.5F, 0, -2));
  EXPECT_THAT(numbers(delta), ElementsAre(3, 0, -4));
  EXPECT_THAT(numbers(clipped(vector_of({3e30F, 4e30F}), 1)),
              ElementsAre(FloatEq(0.6F), FloatEq(0.8F)));
  expect_error(ErrorKind::argument, "norm is 0", [&] { clipped(delta, 0); });
  const Tensor broken = vector_of({1, std::numeric_limits<float>::quiet_NaN()});
  expect_error(ErrorKind::numeric, "number 1 of the delta is nan", [&] { clipped(broken, 1); });
  expect_error(ErrorKind::type, "f64", [&] { clipped(Tensor::zeros(DType::f64, Shape{2}), 1); });
}

TEST(Deltas, GetNoiseThatTheSeedDraws) {
  constexpr int kCount = 40'000;
  const Tensor delta = Tensor::full(DType::f32, Shape{kCount}, 2.0);
  const Tensor found = noised(delta, 0.5, 7);
  EXPECT_TRUE(equal_bits(found, noised(delta, 0.5, 7)));
  EXPECT_FALSE(equal_bits(found, noised(delta, 0.5, 8)));
  EXPECT_TRUE(equal_bits(delta, noised(delta, 0.0, 7)));
  double sum = 0.0;
  double squares = 0.0;
  for (const float x : found.values<const float>()) {
    sum += x - 2.0;
    squares += (x - 2.0) * (x - 2.0);
  }
  EXPECT_NEAR(sum / kCount, 0.0, 4 * 0.5 / std::sqrt(kCount));
  EXPECT_NEAR(std::sqrt(squares / kCount), 0.5, 0.01);
  expect_error(ErrorKind::argument, "deviation is -1", [&] { noised(delta, -1, 7); });
}

TEST(Deltas, TakeEightBitsANumber) {
  const Tensor delta = test::random_tensor({1000}, 3);
  const Packed small = packed(delta, 1);
  EXPECT_EQ(small.numbers.bytes(), 1000U);
  EXPECT_EQ(small.scales.size(), 4);  // blocks of 256
  const Tensor back = unpacked(small);
  const auto wanted = delta.values<const float>();
  const auto found = back.values<const float>();
  const auto scales = small.scales.values<const float>();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_LE(std::abs(found[i] - wanted[i]), scales[i / 256] * 1.001F) << i;
  }
  EXPECT_TRUE(equal_bits(small.numbers, packed(delta, 1).numbers));
  EXPECT_FALSE(equal_bits(small.numbers, packed(delta, 2).numbers));
}

// Each client's rounding errs, the mean of many does not.
TEST(Deltas, KeepTheirMeanInEightBits) {
  const Tensor delta = vector_of({127, 0.3F, -0.3F, 126.9F, 0, -127});
  std::vector<double> sums(6);
  constexpr int kClients = 4000;
  for (std::uint64_t client = 0; client < kClients; ++client) {
    const Tensor back = unpacked(packed(delta, client));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += back.values<const float>()[i];
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NEAR(sums[i] / kClients, delta.values<const float>()[i], 0.03) << i;
  }
}

TEST(Deltas, OfTheSmallestAndTheLargestNumbersArePacked) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_THAT(numbers(unpacked(packed(vector_of({0, 0}), 1))), ElementsAre(0, 0));
  const std::vector<float> large = numbers(unpacked(packed(vector_of({most, -most}), 1)));
  EXPECT_NEAR(large[0] / most, 1.0F, 1e-6);
  EXPECT_NEAR(large[1] / most, -1.0F, 1e-6);
  const Tensor tiny = vector_of({std::numeric_limits<float>::denorm_min(), 0});
  EXPECT_LE(numbers(unpacked(packed(tiny, 1)))[0], std::numeric_limits<float>::min());
  EXPECT_EQ(packed(Tensor::empty(DType::f32, Shape{0}), 1).scales.size(), 0);
  Packed wrong = packed(tiny, 1);
  wrong.scales = vector_of({1, 1});
  expect_error(ErrorKind::shape, "found 2 scales for 2 numbers, wanted 1",
               [&] { unpacked(wrong); });
  wrong.scales = vector_of({std::numeric_limits<float>::quiet_NaN()});
  expect_error(ErrorKind::numeric, "number 0 of the scales is nan", [&] { unpacked(wrong); });
}

}  // namespace
}  // namespace graft::federated
