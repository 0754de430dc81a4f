#include "core/base/memory_use.h"

#include <gtest/gtest.h>

#include <string>

namespace graft {
namespace {

TEST(MemoryUse, FollowsWhatTheProcessTouches) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const std::uint64_t before = resident_bytes();
  const std::string touched(kBytes, 'x');
  EXPECT_GE(resident_bytes(), before + kBytes / 2);
  EXPECT_GE(peak_resident_bytes(), before + kBytes / 2);
  EXPECT_EQ(touched.back(), 'x');
}

}  // namespace
}  // namespace graft
