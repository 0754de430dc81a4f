#include "core/runtime/dead_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace graft {
namespace {

constexpr std::int64_t kArenaBytes = 192;

/// One value of 20 bytes from step 0 to 1, one of 8 to the end, and a byte of scratch in step 1.
Arena layout() {
  Arena arena;
  arena.storage.storages = {{.bytes = 20, .first = 0, .last = 1},
                            {.bytes = 8, .first = 1, .last = 2}};
  arena.storage_offsets = {0, 64};
  arena.workspace_offsets = {0, 128};
  arena.bytes = kArenaBytes;
  return arena;
}

bool is_dead(const Tensor& arena, std::size_t offset) {
  return arena.values<const unsigned char>()[offset] == 0xff;
}

TEST(DeadMemory, IsNaNBeforeARunAndBehindTheLastReader) {
  const Tensor arena = Tensor::zeros(DType::u8, {kArenaBytes});
  const DeadMemory memory(layout(), arena, cpu(), {0, 1});
  auto* const bytes = static_cast<unsigned char*>(arena.data());
  {
    const DeadMemory::Run run(memory);
    run.before(0);
    EXPECT_TRUE(is_dead(arena, 0) && is_dead(arena, 19));
    std::memset(bytes, 1, 20);
    run.after(0);
    run.before(1);
    EXPECT_EQ(bytes[19], 1);
    std::memset(bytes + 64, 2, 8);
    bytes[128] = 3;
    run.after(1);
  }
  EXPECT_TRUE(is_dead(arena, 0) && is_dead(arena, 19) && is_dead(arena, 128));
  EXPECT_EQ(bytes[64], 2);
  EXPECT_EQ(bytes[71], 2);
  EXPECT_TRUE(is_dead(arena, 72));
}

#if defined(__SANITIZE_ADDRESS__)
TEST(DeadMemory, CannotBeTouched) {
  const Tensor arena = Tensor::zeros(DType::u8, {kArenaBytes});
  const DeadMemory memory(layout(), arena, cpu(), {0, 1});
  auto* const bytes = static_cast<volatile unsigned char*>(arena.data());
  const DeadMemory::Run run(memory);
  run.before(0);
  bytes[19] = 1;
  EXPECT_DEATH(bytes[20] = 1, "use-after-poison");
  EXPECT_DEATH(bytes[64] = 1, "use-after-poison");
}
#endif

}  // namespace
}  // namespace graft
