// Random numbers on the card have the CPU's bits: Philox, stochastic rounding, Dropout.
#include <gtest/gtest.h>
#include <simt.h>

#include <cstring>
#include <vector>

#include "core/base/rng.h"
#include "core/device/cuda/grid.h"
#include "core/device/cuda/philox.h"
#include "core/ops/builder.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/stochastic_rounding.h"
#include "core/ops/kernels/stochastic_rounding_cuda.h"
#include "core/ops/math/dropout_cuda.h"
#include "core/runtime/plan.h"
#include "tests/cuda/on_card.h"

namespace graft {
namespace {

using test::card;
using test::OnCard;

__global__ void make_words(std::uint32_t* words, int blocks, std::uint64_t seed,
                           std::uint64_t random_stream, std::uint64_t first) {
  for_each_item(blocks, [&](std::int64_t i) {
    const PhiloxWords made =
        philox_block(seed, random_stream, first + static_cast<std::uint64_t>(i));
    for (int j = 0; j < 4; ++j) words[4 * i + j] = made.word[j];
  });
}

TEST(RandomOnCard, PhiloxHasTheBitsOfTheCpu) {
  constexpr int kBlocks = 100;
  constexpr std::uint64_t kSeed = 0x123456789abcdef;
  constexpr std::uint64_t kStream = 0xfedcba9876543210;
  constexpr std::uint64_t kFirst = 0xffffffc0;  // the counter passes 32 bits
  OnCard words(std::vector<std::uint32_t>(4 * kBlocks));
  launch(make_words, dim3(1), dim3(64), 0, card().stream(), words.data(), kBlocks, kSeed, kStream,
         kFirst);
  const auto found = words.read();
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const auto wanted = Philox(kSeed, kStream).block(kFirst + i);
    for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(found[4 * i + j], wanted[j]) << i << ", " << j;
  }
}

__global__ void round_all(const float* x, BFloat16* y, int count, std::int64_t first,
                          std::uint64_t seed, std::uint64_t random_stream) {
  const DeviceRounding round(seed, random_stream);
  for_each_item(count, [&](std::int64_t i) { y[i] = round(x[i], first + i); });
}

TEST(RandomOnCard, StochasticRoundingHasTheBitsOfTheCpu) {
  std::vector<float> numbers{0.0F,     -0.0F,     1.0F, -3.25F,        1e-40F,
                             INFINITY, -INFINITY, NAN,  3.4028234e38F, 1e-45F};
  for (int i = 0; i < 1000; ++i) numbers.push_back(Philox(1).uniform(i) * 100.0F - 50.0F);
  const int count = static_cast<int>(numbers.size());
  // Odd, even, and across the end of a block of random bits.
  for (const std::int64_t first :
       {std::int64_t{0}, std::int64_t{7}, (std::int64_t{1} << 33) - 500}) {
    OnCard x(numbers);
    OnCard y(std::vector<BFloat16>(numbers.size()));
    launch(round_all, dim3(3), dim3(64), 0, card().stream(), x.data(), y.data(), count, first,
           std::uint64_t{42}, std::uint64_t{2});
    std::vector<BFloat16> wanted(numbers.size());
    StochasticRounding(Philox(42, 2))(numbers.data(), first, count, wanted.data());
    const auto found = y.read();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(found[i].bits, wanted[i].bits) << numbers[i] << " at " << first << " + " << i;
    }
  }
}

TEST(RandomOnCard, DropoutHasTheBitsOfTheCpu) {
  constexpr std::int64_t kSize = 1003;
  constexpr std::uint64_t kStep = 5;
  std::vector<float> numbers(kSize);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) - 500.0F;

  Graph graph("dropout");
  Value* const input = graph.add_input("x", {DType::f32, SymShape(Shape{kSize})});
  Builder builder(graph);
  const Attributes settings{{"ratio", AttributeValue(0.3F)},
                            {"seed", AttributeValue(std::int64_t{11})},
                            {"op_id", AttributeValue(std::int64_t{3})}};
  const Node& node = *builder.node("DropoutTraining", kInternalDomain, {input}, 1, settings);
  std::vector<float> wanted(kSize);
  const void* const inputs[] = {numbers.data()};
  void* const outputs[] = {wanted.data()};
  const RunState state{.step = kStep};
  prepare_kernel(node, cpu()).run({inputs, outputs, nullptr, &state});

  // The stream of step 0 is the hash of the op's id; RandomSource adds the step to it.
  std::uint64_t id = 3 + 0x9e3779b97f4a7c15;
  id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9;
  id = (id ^ (id >> 27)) * 0x94d049bb133111eb;
  const DeviceDropout dropout{
      .size = kSize, .ratio = 0.3F, .seed = 11, .first_stream = id ^ (id >> 31)};
  OnCard x(numbers);
  OnCard step(std::vector<std::uint64_t>{kStep - 1});
  const std::unique_ptr<Replay> replay =
      card().record([&] { dropout.run(x.data(), x.data(), step.data(), card().stream()); });
  card().copy_from_host(step.data(), &kStep, sizeof kStep);  // it is read when the replay runs
  replay->start();
  EXPECT_EQ(x.read(), wanted);
}

TEST(RandomOnCard, UniformAndNormalNumbersAreThoseOfTheCpu) {
  const auto made = [](const char* op, const char* first, const char* second, Device& device) {
    auto graph = std::make_unique<Graph>("one");
    Builder builder(*graph);
    const Attributes settings{{"shape", std::vector<std::int64_t>{7, 11}},
                              {first, AttributeValue(-2.0F)},
                              {second, AttributeValue(3.0F)}};
    graph->add_output(builder.node(op, "", {}, 1, settings)->output());
    Plan plan(std::move(graph), {.device = &device});
    std::vector<Tensor> numbers;
    for (const std::uint64_t step : {0, 1, 2}) {
      plan.run({}, {.step = step});
      numbers.push_back(plan.output(0).to(cpu()).clone());
    }
    return numbers;
  };
  const auto uniform = made("RandomUniform", "low", "high", card());
  const auto wanted = made("RandomUniform", "low", "high", cpu());
  const auto normal = made("RandomNormal", "mean", "scale", card());
  const auto wanted_normal = made("RandomNormal", "mean", "scale", cpu());
  for (std::size_t step = 0; step < 3; ++step) {
    EXPECT_TRUE(equal_bits(uniform[step], wanted[step])) << step;
    const std::vector<double> found = to_double(normal[step]);
    const std::vector<double> near = to_double(wanted_normal[step]);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], near[i], 1e-6) << i;
  }
  EXPECT_FALSE(equal_bits(uniform[0], uniform[1])) << "each run draws anew";
}

}  // namespace
}  // namespace graft
