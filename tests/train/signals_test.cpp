// A signal's handler writes its frame before what the stack pointer points to: in a library's code
// that may be memory of somebody else.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/time.h>

#include <csignal>
#include <cstdint>

#include "core/layers/nets.h"
#include "tests/core/threads.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

struct Seen {
  std::uintptr_t stack_begin = 0;
  std::uintptr_t stack_end = 0;
  volatile std::sig_atomic_t handled = 0;
  volatile std::sig_atomic_t elsewhere = 0;  // of them, not on the stack of the main thread
};
Seen seen;

void note_stack(int /*signal*/) {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  seen.handled = seen.handled + 1;
  if (here < seen.stack_begin || here >= seen.stack_end) seen.elsewhere = seen.elsewhere + 1;
}

/// SIGALRM to the process every 50 us, at most, while it lives.
class Alarms {
 public:
  Alarms() {
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    void* stack = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &stack, &bytes);
    pthread_attr_destroy(&attributes);
    seen.stack_begin = reinterpret_cast<std::uintptr_t>(stack);
    seen.stack_end = seen.stack_begin + bytes;
    seen.handled = 0;
    seen.elsewhere = 0;
    struct sigaction action {};
    action.sa_handler = note_stack;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    every(50);
  }
  ~Alarms() {
    every(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

 private:
  static void every(int microseconds) {
    const itimerval interval{{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &interval, nullptr);
  }
  struct sigaction before_ {};
};

class Signals : public ::testing::TestWithParam<const char*> {};

TEST_P(Signals, MeetTheCallersThreadOnItsStack) {
  constexpr int kEnough = 1000;
  constexpr int kMostSteps = 20000;
  const testing::Threads threads(3);
  // The terms of a weight's gradient: more than oneDNN keeps on the stack, in one block (adr/0082).
  constexpr std::int64_t kRows = 256;
  const Shape image{1, 28, 28};
  Model model = make_net(GetParam(), image, 10, 1);
  TrainStep step(model, {.device = "cpu"});
  const Tensor images = test::random_tensor(Shape{kRows, 1, 28, 28}, 1);
  const Tensor labels = test::cyclic_labels(kRows, 10);
  const Alarms alarms;
  for (int i = 0; i < kMostSteps && seen.handled < kEnough; ++i) step.run({images}, labels);
  EXPECT_GE(seen.handled, kEnough);
  EXPECT_EQ(seen.elsewhere, 0);
}

INSTANTIATE_TEST_SUITE_P(Nets, Signals, ::testing::Values("mlp", "lenet"));

}  // namespace
}  // namespace graft
