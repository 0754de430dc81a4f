#include "core/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simt.h>

#include <numeric>
#include <vector>

#include "core/device/cuda/emulated/emulator.h"
#include "core/device/overlap.h"
#include "tests/core/error_of.h"
#include "tests/cuda/on_card.h"

namespace graft {
namespace {

using test::card;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(CudaDevice, IsListedButNeverAuto) {
  EXPECT_EQ(devices().back(), &card());
  EXPECT_EQ(&device("auto"), &cpu());
  EXPECT_EQ(card().kind(), DeviceKind::cuda);
  EXPECT_THAT(card().description(), HasSubstr("MiB, compute capability 9.0"));
  EXPECT_THAT(error_of([] { device("cuda:0"); }).what(), HasSubstr("auto, cpu, cuda:emulated"));
}

TEST(CudaDevice, FillsAndCopies) {
  auto* const memory = static_cast<unsigned char*>(card().allocate(7));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % Device::kAlignment, 0U);
  std::vector<unsigned char> host(7);
  card().copy_to_host(host.data(), memory, 7);
  EXPECT_THAT(host, Each(0xff));  // not initialised, and no number
  card().fill(memory + 1, 3, 5);
  card().copy_async(memory + 5, memory + 1, 2);  // within the device
  card().copy_to_host(host.data(), memory, 7);
  EXPECT_THAT(host, ElementsAre(0xff, 3, 3, 3, 3, 3, 3));
  card().deallocate(memory);
}

TEST(CudaDevice, WorkWaitsForSomebodyToWait) {
  const auto pinned = card().allocate_host(4);
  auto* const host = static_cast<int*>(pinned.get());
  void* const memory = card().allocate(4);
  *host = 5;
  card().copy_from_host(memory, host, 4);
  *host = 0;
  card().copy_async(host, memory, 4);
  EXPECT_EQ(*host, 0);
  card().synchronize();
  EXPECT_EQ(*host, 5);
  card().deallocate(memory);
}

TEST(CudaDevice, WhatIsGivenBackIsUsedNoMore) {
  void* const memory = card().allocate(4);
  auto pinned = card().allocate_host(4);
  card().fill(memory, 1, 4);
  card().copy_async(pinned.get(), memory, 4);
  pinned.reset();
  card().fill(memory, 2, 4);
  card().deallocate(memory);  // by the emulated runtime at once: nothing may be left to do
  card().synchronize();
}

TEST(CudaDevice, FailuresAreToldToWhoWaits) {
  const std::unique_ptr<Event> event = find_overlap(card())->make_event();
  event->set(Stream::work);
  card().note_failure("the first");
  card().note_failure("the second");
  event->settle();
  card().settle();
  EXPECT_THAT(error_of([] { card().synchronize(); }).what(), HasSubstr("the first"));
  card().synchronize();
}

TEST(CudaDevice, WhatFailsWhileItIsRecordedIsNotReplayed) {
  const Error error = error_of([] { card().record([] { card().note_failure("no kernel"); }); });
  EXPECT_EQ(error.kind(), ErrorKind::device);
  EXPECT_THAT(error.what(), HasSubstr("no kernel"));
  card().synchronize();
}

TEST(CudaDevice, OutOfMemoryNamesSizesAndLeavesTheDeviceUsable) {
  emulated::set_memory_limit(1 << 20);
  const Error error = error_of([] { card().allocate(2 << 20); });
  EXPECT_EQ(error.kind(), ErrorKind::memory);
  EXPECT_THAT(error.what(), HasSubstr("cannot allocate 2097152 bytes, 1048576 are free"));
  void* const memory = card().allocate(1 << 19);
  EXPECT_EQ(card().free_bytes(), std::size_t{1} << 19);
  card().deallocate(memory);
  card().synchronize();
  emulated::set_memory_limit(std::size_t{8} << 30);
}

__global__ void step(float* parameter, const float* gradient, const float* rate, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) parameter[i] -= *rate * gradient[i];
}

/// Three steps of gradient descent with a rate that changes from one to the next.
class Descent {
 public:
  static constexpr int kCount = 300;

  Descent() {
    std::vector<float> numbers(2 * kCount + 1);
    std::iota(numbers.begin(), numbers.end(), 1.0F);
    memory_ = static_cast<float*>(card().allocate(numbers.size() * sizeof(float)));
    card().copy_from_host(memory_, numbers.data(), numbers.size() * sizeof(float));
  }
  ~Descent() { card().deallocate(memory_); }
  Descent(const Descent&) = delete;
  Descent& operator=(const Descent&) = delete;

  void give_step() {
    card().copy_async(memory_ + 2 * kCount, rate(), sizeof(float));
    launch(step, dim3(3), dim3(128), 0, card().stream(), memory_, memory_ + kCount,
           memory_ + 2 * kCount, kCount);
  }
  template <class Start>
  std::vector<float> run(Start&& start) {
    for (const float next : {0.1F, 0.25F, 0.7F}) {
      *rate() = next;
      start();
      card().synchronize();
    }
    std::vector<float> result(kCount);
    card().copy_to_host(result.data(), memory_, kCount * sizeof(float));
    return result;
  }

 private:
  float* rate() { return static_cast<float*>(staging_.get()); }
  std::shared_ptr<void> staging_ = card().allocate_host(sizeof(float));
  float* memory_;
};

TEST(CudaDevice, ReplayGivesTheBitsOfPlainRuns) {
  Descent plain;
  Descent recorded;
  const std::unique_ptr<Replay> replay = card().record([&] { recorded.give_step(); });
  const std::vector<float> expected = plain.run([&] { plain.give_step(); });
  EXPECT_EQ(recorded.run([&] { replay->start(); }), expected);
  EXPECT_NE(expected[0], 1.0F);
}

TEST(CudaDevice, RecordingRefusesToWaitAndForgetsWhatThrew) {
  EXPECT_THAT(error_of([] { card().record([] { card().synchronize(); }); }).what(),
              HasSubstr("not permitted while a stream is captured"));
  EXPECT_THAT(error_of([] { card().record([] { card().allocate(1); }); }).what(),
              HasSubstr("not permitted while a stream is captured"));
  Descent descent;  // waits: nothing is recorded any more
}

}  // namespace
}  // namespace graft
