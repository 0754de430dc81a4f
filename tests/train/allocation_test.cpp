// Counts every allocation of this program: operator new and, but for the sanitizers' build, malloc
// and its kin are replaced. A step after the first must make none. oneDNN's execute builds a table
// of its arguments on the heap (about nine small blocks a call, by version 3.2); these come from
// inside libdnnl, are told apart by their caller's address, and are the only ones left out.
#include <gtest/gtest.h>

#if defined(__SANITIZE_ADDRESS__)

TEST(Allocation, IsCountedWithoutSanitizersOnly) {
  GTEST_SKIP() << "the sanitizer replaces the allocator itself";
}

#else

#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string_view>

#include "core/layers/nets.h"
#include "core/runtime/session.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> ours{0};
std::atomic<int> library{0};

bool is_inside_onednn(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
         std::string_view(info.dli_fname).find("libdnnl") != std::string_view::npos;
}

void count(const void* caller) {
  if (counting) ++(is_inside_onednn(caller) ? library : ours);
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t bytes);  // NOLINT: glibc's own names
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_calloc(number, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count(__builtin_return_address(0));
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}
namespace {
void* plain_allocation(std::size_t bytes) {
  return __libc_malloc(bytes);
}
}  // namespace

namespace {
void* counted_allocation(std::size_t bytes, const void* caller) {
  count(caller);
  void* const memory = plain_allocation(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t bytes) {
  return counted_allocation(bytes, __builtin_return_address(0));
}
void* operator new[](std::size_t bytes) {
  return counted_allocation(bytes, __builtin_return_address(0));
}
// Where only one of a pair is inlined, the compiler takes the other's for its own.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace graft {
namespace {

/// Allocations of ours in three calls of `step`.
/// On a busy machine a thread may get its first piece of work, and with it memory of its own, only
/// in a later step; a step that allocates would do so in each round.
template <class Step>
int allocations_of(Step&& step) {
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    ours = 0;
    library = 0;
    counting = true;
    for (int i = 0; i < 3; ++i) step();
    counting = false;
    if (ours == 0) break;
  }
  return ours;
}

class Allocation : public testing::TestWithParam<std::pair<std::string, Shape> > {};

TEST_P(Allocation, NoneAfterTheFirstStep) {
  const auto& [net, image] = GetParam();
  Model model = make_net(net, image, 10, 1);
  TrainStep step(model, {.optimizer = Adam{}, .clip = {.norm = 1.0F}});
  std::vector<std::int64_t> dims = image.dims();
  dims.insert(dims.begin(), 4);
  const std::vector<Tensor> inputs{test::random_tensor(Shape(dims), 1)};
  const Tensor target = test::cyclic_labels(4, 10);
  step.run(inputs, target);
  EXPECT_EQ(allocations_of([&] { step.run(inputs, target); }), 0);
  RecordProperty("inside_onednn", library.load());
}

TEST_P(Allocation, NoneInBoundRuns) {
  const auto& [net, image] = GetParam();
  const Model model = make_net(net, image, 10, 1);
  std::vector<std::int64_t> dims = image.dims();
  dims.insert(dims.begin(), 4);
  Session session(model, {.weights_change = true});
  BoundRun bound = session.bind({test::random_tensor(Shape(dims), 1)});
  bound.run();
  EXPECT_EQ(allocations_of([&] { bound.run(); }), 0);
  Session fixed(model);
  bound = fixed.bind({test::random_tensor(Shape(dims), 1)});
  bound.run();
  EXPECT_EQ(allocations_of([&] { bound.run(); }), 0);
}

/// Bytes that are allocated and not freed.
std::size_t held_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Batch normalization is folded, and kernels bring weights into layouts of their own: all of that
/// once. Each run holds its own values, which are few here.
TEST(BoundRuns, ShareTheWeights) {
  Session session(make_net("resnet18", {3, 8, 8}, 10, 1));
  const std::vector<Tensor> inputs{test::random_tensor({1, 3, 8, 8}, 1)};
  std::vector<BoundRun> runs;
  runs.push_back(session.bind(inputs));
  const std::size_t one = held_bytes();
  for (int i = 0; i < 3; ++i) runs.push_back(session.bind(inputs));
  constexpr std::size_t kWeights = 44U << 20;
  EXPECT_LT(held_bytes() - one, kWeights / 4);
  for (BoundRun& run : runs) run.run();
  EXPECT_TRUE(equal_bits(runs.front().outputs().front(), runs.back().outputs().front()));
}

INSTANTIATE_TEST_SUITE_P(Nets, Allocation,
                         testing::Values(std::pair{std::string("mlp"), Shape{1, 8, 8}},
                                         std::pair{std::string("lenet"), Shape{1, 28, 28}},
                                         std::pair{std::string("resnet20"), Shape{3, 16, 16}}),
                         [](const auto& one) { return one.param.first; });

TEST(AllocationCounter, SeesMalloc) {
  ours = 0;
  counting = true;
  void* volatile block = std::malloc(100);
  counting = false;
  std::free(block);
  EXPECT_EQ(ours, 1);
}

TEST(AllocationCounter, SeesAllocations) {
  ours = 0;
  counting = true;
  const std::vector<int> block(100);
  counting = false;
  EXPECT_EQ(ours, 1);
  EXPECT_EQ(block.size(), 100U);
}

}  // namespace
}  // namespace graft

#endif
