// Training for long takes no more memory than training for short.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "core/base/memory_use.h"
#include "core/base/parallel.h"
#include "core/layers/nets.h"
#include "data/loader.h"
#include "data/tensor_dataset.h"
#include "tests/faults/faults.h"
#include "train/train_step.h"

namespace graft::testing {
namespace {

/// GRAFT_SOAK_STEPS makes more.
int wanted_steps() {
  const char* const given = std::getenv("GRAFT_SOAK_STEPS");
  return given == nullptr ? 20'000 : std::atoi(given);
}

TEST(Soak, MemoryIsFlat) {
  set_thread_count(1);
  const auto data = tensor_dataset({{"x", Tensor::full(DType::f32, {404, 1, 2, 2}, 0.5)}},
                                   {"y", Tensor::full(DType::i64, {404}, 1)}, 3);
  Model model = make_net("mlp", Shape{1, 2, 2}, 3, 1);
  TrainStep step(model, {.optimizer = Adam{.lr = 1e-4F}});
  DataLoader loader(data, {.batch = 8, .shuffle = true});
  std::int64_t blocks = 0;
  std::uint64_t resident = 0;
  float loss = 0;
  int steps = 0;
  for (int epoch = 0; steps < wanted_steps(); ++epoch) {
    for (const Batch& batch : loader) {  // 50 of 8 samples, one of 4: two plans
      loss = step.run(batch.inputs, batch.target);
      ++steps;
    }
    if (epoch == 10) {
      blocks = live_blocks();
      resident = resident_bytes();
    }
  }
  EXPECT_LT(loss, 0.1F);
  EXPECT_EQ(live_blocks(), blocks);
  EXPECT_LT(resident_bytes(), resident + (1U << 20)) << "behind " << steps << " steps";
  std::cout << steps << " steps: " << live_blocks() - blocks << " blocks more, "
            << static_cast<std::int64_t>(resident_bytes() - resident) / 1024 << " KiB more\n";
}

}  // namespace
}  // namespace graft::testing
