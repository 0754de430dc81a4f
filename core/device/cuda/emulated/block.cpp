#include "core/device/cuda/emulated/block.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/cuda/emulated/count.h"
#include "core/device/cuda/emulated/emulator.h"
#include "core/device/cuda/emulated/fiber.h"
#include "core/device/cuda/emulated/sanitizer.h"

// Read by kernels, in CUDA's spelling.
uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace graft::emulated {
namespace {

constexpr std::size_t kWarp = 32;
constexpr std::size_t kMostThreads = 1024;
constexpr std::size_t kMostSharedBytes = 48 * 1024;  // what a kernel may have without asking
constexpr std::size_t kMostExchangedBytes = 16;
constexpr unsigned char kUnwritten = 0xff;  // NaN as a float

enum class State { ready, at_block_barrier, in_warp_operation, done };

struct Thread {
  Fiber fiber;
  uint3 index{};
  State state = State::ready;
  std::source_location where{};  ///< what it waits at
  unsigned exchanges = 0;
  unsigned barriers = 0;
  /// Two, by turns: a thread may give its next value while another still takes the last one.
  std::array<std::array<char, kMostExchangedBytes>, 2> given{};
};

/// What the race detector sees two waits in a row as.
struct alignas(64) WaitPoints {
  std::array<char, 64> first;
  std::array<char, 64> second;
  void* of(unsigned turn) { return turn % 2 == 0 ? first.data() : second.data(); }
};

struct Engine {
  std::vector<std::unique_ptr<Thread>> threads;
  std::size_t count = 0;  ///< of threads of the block that runs
  std::size_t now = 0;
  const std::function<void()>* body = nullptr;
  std::vector<std::uint64_t> shared;  // words: aligned
  std::string fault;
  std::uint64_t seed = 0;
  std::mt19937_64 random;
  WaitPoints block_waits{};
  std::array<WaitPoints, kMostThreads / kWarp> warp_waits{};
  WaitPoints block_start{};
  WaitPoints block_end{};
};
Engine& engine() {
  static Engine& instance = *new Engine;
  return instance;
}

Thread& current() {
  return *engine().threads[engine().now];
}

std::string describe(const std::source_location& where) {
  return text(where.file_name(), ":", where.line());
}

/// The race detector looks into std::memcpy, also here.
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    static_cast<volatile char*>(to)[i] = static_cast<const volatile char*>(from)[i];
  }
}

bool is_same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::string_view(a.file_name()) == b.file_name();
}

/// Ends the kernel once the thread suspends itself for good, as the caller does next: destructors
/// of what it still holds would not run.
template <class... Args>
void note_fault(const Args&... why) {
  engine().fault = text(why..., " (thread ", threadIdx.x, ",", threadIdx.y, ",", threadIdx.z, ")");
}

/// Where each thread begins.
void thread_entry() {
  Engine& e = engine();
  happens_after(e.block_start.of(0));
  try {
    (*e.body)();
  } catch (const std::exception& error) {
    e.fault = text("a kernel threw: ", error.what());
  }
  happens_before(e.block_end.of(0));
  current().state = State::done;
  Fiber::suspend_for_good();
}

void wait(State state, const std::source_location& where, void* point) {
  Thread& thread = current();
  thread.state = state;
  thread.where = where;
  happens_before(point);
  Fiber::suspend();
  happens_after(point);
}

class BlockRun {
 public:
  explicit BlockRun(std::size_t count) : e_(engine()), warps_((count + kWarp - 1) / kWarp) {}

  void run() {
    prepare();
    for (;;) {
      run_warps();
      if (count(State::done) == e_.count) return;
      release(0, e_.count, State::at_block_barrier, "__syncthreads");
    }
  }

 private:
  void prepare() {
    while (e_.threads.size() < e_.count) e_.threads.push_back(std::make_unique<Thread>());
    for (std::size_t i = 0; i < e_.count; ++i) {
      Thread& thread = *e_.threads[i];
      const auto at = static_cast<unsigned>(i);
      thread.index = {at % blockDim.x, at / blockDim.x % blockDim.y, at / blockDim.x / blockDim.y};
      thread.state = State::ready;
      thread.exchanges = 0;
      thread.barriers = 0;
      thread.fiber.start(thread_entry);
    }
  }

  /// Until none can go on.
  void run_warps() {
    std::vector<std::size_t> runnable(warps_);
    std::iota(runnable.begin(), runnable.end(), std::size_t{0});
    while (!runnable.empty()) {
      const std::size_t k = e_.seed == 0 ? 0 : e_.random() % runnable.size();
      if (!step_warp(runnable[k])) {
        runnable.erase(runnable.begin() + static_cast<std::ptrdiff_t>(k));
      }
    }
  }

  /// Until each of its threads waits; false if none was ready.
  bool step_warp(std::size_t warp) {
    const std::size_t first = warp * kWarp;
    const std::size_t last = std::min(first + kWarp, e_.count);
    std::array<std::size_t, kWarp> order{};
    std::iota(order.begin(), order.end(), first);
    if (e_.seed != 0) std::shuffle(order.begin(), order.begin() + (last - first), e_.random);
    bool ran = false;
    for (std::size_t i = 0; i < last - first; ++i) {
      if (e_.threads[order[i]]->state != State::ready) continue;
      resume(order[i]);
      ran = true;
    }
    const auto in_operation = [&](std::size_t i) {
      return e_.threads[i]->state == State::in_warp_operation;
    };
    for (std::size_t i = first; i < last; ++i) {
      if (!in_operation(i)) continue;
      release(first, last, State::in_warp_operation, "a warp operation");
      return true;
    }
    return ran;
  }

  void resume(std::size_t i) {
    Thread& thread = *e_.threads[i];
    e_.now = i;
    threadIdx = thread.index;
    thread.fiber.resume();
    if (!e_.fault.empty()) fail_block(std::exchange(e_.fault, {}));
  }

  /// Lets threads [first, last) go on, all of which have to wait for the same.
  void release(std::size_t first, std::size_t last, State state, const char* what) {
    const Thread* waiting = nullptr;
    for (std::size_t i = first; i < last; ++i) {
      if (e_.threads[i]->state == state) waiting = e_.threads[i].get();
    }
    for (std::size_t i = first; i < last; ++i) {
      Thread& thread = *e_.threads[i];
      if (thread.state != state || !is_same_place(thread.where, waiting->where)) {
        const bool done = thread.state == State::done;
        fail_block(text("divergent ", what, ": thread ", waiting->index.x, ",", waiting->index.y,
                        ",", waiting->index.z, " waits at ", describe(waiting->where), ", thread ",
                        thread.index.x, ",", thread.index.y, ",", thread.index.z,
                        done ? " has returned" : " at " + describe(thread.where)));
      }
    }
    for (std::size_t i = first; i < last; ++i) e_.threads[i]->state = State::ready;
  }

  std::size_t count(State state) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < e_.count; ++i) found += e_.threads[i]->state == state ? 1 : 0;
    return found;
  }

  [[noreturn]] static void fail_block(const std::string& why) {
    throw Fault(text(why, ", block ", blockIdx.x, ",", blockIdx.y, ",", blockIdx.z));
  }

  Engine& e_;
  std::size_t warps_;
};

void check_launch(const dim3& grid, const dim3& block, std::size_t shared_bytes) {
  const auto threads = std::size_t{block.x} * block.y * block.z;
  const auto blocks = std::size_t{grid.x} * grid.y * grid.z;
  if (threads == 0 || threads > kMostThreads || blocks == 0 || grid.y > 65535 || grid.z > 65535 ||
      grid.x > 2147483647U || shared_bytes > kMostSharedBytes) {
    throw Fault(text("invalid launch: grid ", grid.x, ",", grid.y, ",", grid.z, ", block ", block.x,
                     ",", block.y, ",", block.z, ", ", shared_bytes,
                     " shared bytes; a block has 1 to ", kMostThreads, " threads and up to ",
                     kMostSharedBytes, " shared bytes"));
  }
}

}  // namespace

void set_thread_order(std::uint64_t seed) {
  engine().seed = seed;
  engine().random.seed(seed);
}

namespace {

std::size_t kernels = 0;

}  // namespace

void count_kernel() {
  ++kernels;
}

std::size_t kernels_run() {
  return kernels;
}

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes,
              const std::function<void()>& thread) {
  check_launch(grid, block, shared_bytes);
  count_kernel();
  Engine& e = engine();
  gridDim = grid;
  blockDim = block;
  e.count = std::size_t{block.x} * block.y * block.z;
  e.body = &thread;
  std::vector<std::size_t> order(std::size_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (e.seed != 0) std::shuffle(order.begin(), order.end(), e.random);
  for (const std::size_t at : order) {
    const auto index = static_cast<unsigned>(at);
    blockIdx = {index % grid.x, index / grid.x % grid.y, index / grid.x / grid.y};
    // Unwritten for each block, with nothing behind its end.
    e.shared.assign(shared_bytes / sizeof(std::uint64_t) + 2, 0);
    std::memset(e.shared.data(), kUnwritten, e.shared.size() * sizeof(std::uint64_t));
    happens_before(e.block_start.of(0));
    BlockRun(e.count).run();
    happens_after(e.block_end.of(0));
  }
}

int lane() {
  return static_cast<int>(engine().now % kWarp);
}

void* dynamic_shared() {
  const auto address = reinterpret_cast<std::uintptr_t>(engine().shared.data());
  return reinterpret_cast<void*>((address + 15) / 16 * 16);
}

void sync_block(const std::source_location& where) {
  wait(State::at_block_barrier, where, engine().block_waits.of(current().barriers++));
}

void sync_warp(unsigned mask, const std::source_location& where) {
  if (mask != ~0U) {
    note_fault("a warp operation of some threads only, wanted all 32");
    Fiber::suspend_for_good();
  }
  wait(State::in_warp_operation, where,
       engine().warp_waits[engine().now / kWarp].of(current().exchanges++));
}

void exchange(unsigned mask, void* value, std::size_t bytes, int from_lane,
              const std::source_location& where) {
  Thread& thread = current();
  const std::size_t from = engine().now / kWarp * kWarp + static_cast<std::size_t>(from_lane);
  if (bytes > kMostExchangedBytes || from_lane < 0 || from_lane >= static_cast<int>(kWarp) ||
      from >= engine().count) {
    note_fault("exchange with lane ", from_lane, ", which the warp lacks");
    Fiber::suspend_for_good();
  }
  const std::size_t turn = thread.exchanges % 2;
  copy_bytes(thread.given[turn].data(), value, bytes);
  sync_warp(mask, where);
  copy_bytes(value, engine().threads[from]->given[turn].data(), bytes);
}

void check_alignment(const void* address, std::size_t alignment) {
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(address) % alignment;
  if (beyond == 0) return;
  note_fault("misaligned access: the address lies ", beyond, " bytes behind a multiple of ",
             alignment);
  Fiber::suspend_for_good();
}

}  // namespace graft::emulated
