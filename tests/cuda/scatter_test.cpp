// Scatters of many updates: each place takes its own in their order, whatever the order of threads.
#include <gtest/gtest.h>

#include "core/base/rng.h"
#include "core/device/cuda/emulated/emulator.h"
#include "core/ops/builder.h"
#include "core/runtime/plan.h"
#include "tests/cuda/on_card.h"
#include "tests/train/nets.h"

namespace graft {
namespace {

constexpr std::int64_t kPlaces = 40;

/// Places in no order, many of them several times.
Tensor random_places(std::int64_t count) {
  const Philox random(3);
  Tensor places = Tensor::empty(DType::i64, {count});
  for (std::int64_t i = 0; i < count; ++i) {
    places.values<std::int64_t>()[static_cast<std::size_t>(i)] =
        static_cast<std::int64_t>(random.uniform(static_cast<std::uint64_t>(i)) * kPlaces);
  }
  return places;
}

Tensor scattered(std::int64_t count, const std::string& reduction, Device& device) {
  auto graph = std::make_unique<Graph>("scatter");
  const ValueType updates{DType::f32, SymShape(Shape{count})};
  Value* const update = graph->add_input("update", updates);
  Value* const data = graph->add_initializer("data", test::random_tensor({kPlaces}, 1));
  Value* const places = graph->add_initializer("places", random_places(count));
  Builder builder(*graph);
  const Attributes settings{{"reduction", AttributeValue(reduction)}};
  graph->add_output(
      builder.node("ScatterElements", "", {data, places, update}, 1, settings)->output());
  Plan plan(std::move(graph), {.device = &device});
  plan.run({{test::random_tensor({count}, 2)}});
  return plan.output(0).to(cpu()).clone();
}

TEST(ScatterOnCard, TakesUpdatesOfAPlaceInTheirOrder) {
  for (const std::int64_t count : {1, 2, 3, 64, 1500}) {
    for (const char* const reduction : {"none", "add", "mul", "max", "min"}) {
      const Tensor wanted = scattered(count, reduction, cpu());
      for (const std::uint64_t seed : {0, 7}) {
        emulated::set_thread_order(seed);
        EXPECT_TRUE(equal_bits(scattered(count, reduction, test::card()), wanted))
            << count << " updates, " << reduction << ", order " << seed;
      }
      emulated::set_thread_order(0);
    }
  }
}

}  // namespace
}  // namespace graft
