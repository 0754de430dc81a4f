// Kernels with a bug each, beside the same kernel without it: the emulator has to tell them apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simt.h>

#include <set>
#include <vector>

#include "core/device/cuda/emulated/emulator.h"
#include "tests/core/error_of.h"
#include "tests/cuda/on_card.h"

namespace graft {
namespace {

using emulated::set_stream_order;
using emulated::set_thread_order;
using test::card;
using testing::HasSubstr;

using OnCard = test::OnCard<float>;

constexpr int kThreads = 128;
const std::vector<std::uint64_t> kOrders{0, 1, 2, 3, 4, 5, 6, 7};

std::vector<float> zeros(int count) {
  return std::vector<float>(static_cast<std::size_t>(count));
}

/// Every order of the threads, and greedy again for those who come after.
template <class Use>
void in_all_orders(Use&& use) {
  for (const std::uint64_t seed : kOrders) {
    set_thread_order(seed);
    use();
  }
  set_thread_order(0);
}

/// What the card says of a kernel when it is waited for; empty if all is well.
std::string complaint() {
  try {
    card().synchronize();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    return error.what();
  }
}

/// y[i] = x[kThreads - 1 - i] by way of shared memory.
__global__ void reverse(const float* x, float* y, bool waits) {
  __shared__ float values[kThreads];
  values[threadIdx.x] = x[threadIdx.x];
  if (waits) __syncthreads();
  y[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

/// How many of the orders give the reversed numbers. Each run has numbers of its own: shared memory
/// still holds those of the last.
int right_reversals(bool waits) {
  int right = 0;
  float start = 0;
  in_all_orders([&] {
    std::vector<float> numbers(kThreads);
    for (float& x : numbers) x = start++;
    const OnCard x(numbers);
    const OnCard y(zeros(kThreads));
    launch(reverse, dim3(1), dim3(kThreads), 0, card().stream(), x.data(), y.data(), waits);
    right += y.read() == std::vector<float>(numbers.rbegin(), numbers.rend()) ? 1 : 0;
  });
  return right;
}

TEST(PlantedBug, MissingBarrier) {
  EXPECT_EQ(right_reversals(true), static_cast<int>(kOrders.size()));
  EXPECT_EQ(right_reversals(false), 0);
}

__global__ void half_waits(float* y, int waiting) {
  if (static_cast<int>(threadIdx.x) < waiting) __syncthreads();
  y[threadIdx.x] = 1;
}

__global__ void two_places(float* y) {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  y[threadIdx.x] = 1;
}

TEST(PlantedBug, DivergentBarrier) {
  const OnCard y(zeros(kThreads));
  in_all_orders([&] {
    launch(half_waits, dim3(1), dim3(kThreads), 0, card().stream(), y.data(), kThreads);
    EXPECT_EQ(complaint(), "");
    launch(half_waits, dim3(1), dim3(kThreads), 0, card().stream(), y.data(), kThreads / 2);
    EXPECT_THAT(complaint(), HasSubstr("divergent __syncthreads"));
    launch(two_places, dim3(1), dim3(kThreads), 0, card().stream(), y.data());
    EXPECT_THAT(complaint(), HasSubstr("divergent __syncthreads"));
  });
}

__global__ void warp_sum(float* y, int lanes) {
  float sum = y[threadIdx.x];
  if (static_cast<int>(threadIdx.x) >= lanes) return;
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0U, sum, distance);
  y[threadIdx.x] = sum;
}

TEST(PlantedBug, ShuffleWithoutAllLanes) {
  in_all_orders([&] {
    const OnCard y(std::vector<float>(32, 1));
    launch(warp_sum, dim3(1), dim3(32), 0, card().stream(), y.data(), 32);
    EXPECT_EQ(y.read(), std::vector<float>(32, 32));
    launch(warp_sum, dim3(1), dim3(32), 0, card().stream(), y.data(), 31);
    EXPECT_THAT(complaint(), HasSubstr("divergent a warp operation"));
  });
}

struct alignas(16) Four {
  float v[4];
};

__global__ void copy_four(const float* x, float* y) {
  store_vector(y, load_vector<Four>(x));
}

TEST(PlantedBug, MisalignedVector) {
  const OnCard x({1, 2, 3, 4, 5});
  const OnCard y(zeros(4));
  launch(copy_four, dim3(1), dim3(1), 0, card().stream(), x.data(), y.data());
  EXPECT_THAT(y.read(), testing::ElementsAre(1, 2, 3, 4));
  launch(copy_four, dim3(1), dim3(1), 0, card().stream(), x.data() + 1, y.data());
  EXPECT_THAT(complaint(), HasSubstr("misaligned access"));
}

__global__ void write_up_to(float* y, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) y[i] = 1;
}

TEST(PlantedBug, OutOfBounds) {
  const auto write = [](int count) {
    const OnCard y(zeros(100));
    launch(write_up_to, dim3(16), dim3(kThreads), 0, card().stream(), y.data(), count);
    const std::string found = complaint();
    if (!found.empty()) fail(ErrorKind::device, found);
  };
  write(100);
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_DEATH(write(101), "use-after-poison");
#else
  EXPECT_THAT(error_of([&] { write(101); }).what(), HasSubstr("behind the end"));
#endif
  EXPECT_DEATH(write(2000), "");
}

TEST(PlantedBug, HostReadOfDeviceMemory) {
  const OnCard y({1});
  EXPECT_DEATH(
      {
        const volatile float* const from_host = y.data();
        std::exit(*from_host == 1 ? 0 : 1);
      },
      "");
}

TEST(PlantedBug, StagingReusedTooEarly) {
  const auto staging = card().allocate_host(sizeof(float));
  auto* const number = static_cast<float*>(staging.get());
  const auto send_two = [&](bool waits) {
    const OnCard y({0, 0});
    *number = 1;
    card().copy_async(y.data(), number, sizeof(float));
    if (waits) card().synchronize();
    *number = 2;
    card().copy_async(y.data() + 1, number, sizeof(float));
    return y.read();
  };
  EXPECT_THAT(send_two(true), testing::ElementsAre(1, 2));
  EXPECT_THAT(send_two(false), testing::ElementsAre(2, 2));
}

__global__ void sum_by_atomics(const float* x, float* sum) {
  atomicAdd(sum, x[threadIdx.x]);
}

__global__ void sum_by_one(const float* x, float* sum) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < kThreads; ++i) *sum += x[i];
}

/// The different sums that the orders of the threads give.
std::set<float> sums(void (*kernel)(const float*, float*)) {
  std::vector<float> numbers(kThreads);
  for (int i = 0; i < kThreads; ++i) numbers[i] = i % 3 == 0 ? 1e7F : 0.1F * static_cast<float>(i);
  std::set<float> found;
  in_all_orders([&] {
    const OnCard x(numbers);
    const OnCard sum({0});
    launch(kernel, dim3(1), dim3(kThreads), 0, card().stream(), x.data(), sum.data());
    found.insert(sum.read()[0]);
  });
  return found;
}

TEST(PlantedBug, FloatAtomics) {
  EXPECT_EQ(sums(sum_by_one).size(), 1U);
  EXPECT_GT(sums(sum_by_atomics).size(), 1U);
}

__global__ void count_by_atomics(int* sum) {
  atomicAdd(sum, 1);
}

TEST(Emulator, IntegerAtomicsCountEveryThread) {
  in_all_orders([&] {
    const OnCard sum({0});
    launch(count_by_atomics, dim3(5), dim3(kThreads), 0, card().stream(),
           reinterpret_cast<int*>(sum.data()));
    EXPECT_EQ(std::bit_cast<int>(sum.read()[0]), 5 * kThreads);
  });
}

__global__ void fill_dynamic(float* y, int count) {
  auto* const values = dynamic_shared<float>();
  for (int i = threadIdx.x; i < count; i += blockDim.x) values[i] = static_cast<float>(i);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.y * gridDim.x + blockIdx.x] = values[count - 1];
}

TEST(Emulator, DynamicSharedMemoryAndGrids) {
  const OnCard y(zeros(6));
  launch(fill_dynamic, dim3(3, 2), dim3(16, 4), 300 * sizeof(float), card().stream(), y.data(),
         300);
  EXPECT_EQ(y.read(), std::vector<float>(6, 299));
  launch(fill_dynamic, dim3(1), dim3(2048), 4, card().stream(), y.data(), 1);
  EXPECT_THAT(complaint(), HasSubstr("invalid launch"));
}

/// Work on one stream that needs what another one copies.
std::vector<float> over_two_streams(bool waits) {
  cudaStream_t copies = nullptr;
  cudaEvent_t copied = nullptr;
  cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&copied, cudaEventDisableTiming);
  const OnCard x(std::vector<float>(kThreads, 1));
  const OnCard y(zeros(kThreads));
  const std::vector<float> next(kThreads, 7);
  cudaMemcpyAsync(x.data(), next.data(), kThreads * sizeof(float), cudaMemcpyDefault, copies);
  cudaEventRecord(copied, copies);
  if (waits) cudaStreamWaitEvent(card().stream(), copied, 0);
  launch(reverse, dim3(1), dim3(kThreads), 0, card().stream(), x.data(), y.data(), true);
  std::vector<float> result = y.read();
  cudaStreamDestroy(copies);
  cudaEventDestroy(copied);
  return result;
}

TEST(PlantedBug, MissingWaitBetweenStreams) {
  int right_without = 0;
  for (const std::uint64_t seed : kOrders) {
    set_stream_order(seed);
    EXPECT_EQ(over_two_streams(true), std::vector<float>(kThreads, 7)) << "seed " << seed;
    right_without += over_two_streams(false)[0] == 7 ? 1 : 0;
  }
  set_stream_order(0);
  EXPECT_LT(right_without, static_cast<int>(kOrders.size()));
}

}  // namespace
}  // namespace graft
