#include "core/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "tests/core/error_of.h"

namespace graft {
namespace {

TEST(Device, CpuIsAlwaysThereAndFirst) {
  ASSERT_FALSE(devices().empty());
  EXPECT_EQ(devices().front(), &cpu());
  EXPECT_EQ(&device("cpu"), &cpu());
  EXPECT_EQ(&device("auto"), &cpu());
  EXPECT_EQ(cpu().kind(), DeviceKind::cpu);
  EXPECT_EQ(name(DeviceKind::cuda), "cuda");
  EXPECT_NE(cpu().description().find("threads"), std::string::npos);
}

TEST(Device, UnknownNameListsTheValidOnes) {
  const Error error = error_of([] { device("gpu7"); });
  EXPECT_EQ(error.kind(), ErrorKind::device);
  EXPECT_THAT(error.what(), testing::HasSubstr("'gpu7'; valid here: auto, cpu"));
}

TEST(CpuDevice, MemoryIsAlignedAndDistinct) {
  for (const std::size_t bytes : {0, 1, 64, 1000}) {
    void* const first = cpu().allocate(bytes);
    void* const second = cpu().allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % Device::kAlignment, 0U);
    EXPECT_NE(first, second);
    std::memset(first, 1, bytes);
    cpu().deallocate(first);
    cpu().deallocate(second);
  }
}

TEST(CpuDevice, SizesNearTheLimitAreAMemoryError) {
  EXPECT_EQ(kind_of([] { cpu().allocate(std::numeric_limits<std::size_t>::max() - 3); }),
            ErrorKind::memory);
}

TEST(CpuDevice, CopiesBothWays) {
  const int source[3] = {1, 2, 3};
  int middle[3] = {};
  int target[3] = {};
  cpu().copy_from_host(middle, source, sizeof source);
  cpu().copy_to_host(target, middle, sizeof middle);
  cpu().synchronize();
  EXPECT_EQ(target[0] * 100 + target[1] * 10 + target[2], 123);
  cpu().copy_from_host(nullptr, nullptr, 0);
}

TEST(CpuDevice, DoesAtOnceWhatOthersDoInOrder) {
  const std::shared_ptr<void> memory = cpu().allocate_host(4);
  auto* const bytes = static_cast<unsigned char*>(memory.get());
  cpu().fill(bytes, 7, 4);
  cpu().copy_async(bytes, "ab", 2);
  EXPECT_EQ(std::string(bytes, bytes + 4), "ab\a\a");
  int calls = 0;
  cpu().call_host([](void* count) { ++*static_cast<int*>(count); }, &calls);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(cpu().record([&] { ++calls; }), nullptr);
  EXPECT_EQ(calls, 1) << "there is nothing to save, so nothing is called";
}

}  // namespace
}  // namespace graft
