#include "core/device/cuda/emulated/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "core/base/error.h"
#include "core/device/cuda/emulated/sanitizer.h"

// Saves the registers that a call has to keep on the stack, and the stack pointer where the first
// argument says; takes up the stack pointer in the second.
extern "C" void graft_switch_stack(void** save, void* to);
asm(R"(
.text
.globl graft_switch_stack
.type graft_switch_stack, @function
graft_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size graft_switch_stack, .-graft_switch_stack
)");

namespace graft::emulated {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStackBytes = 64 * 1024;
constexpr std::size_t kSavedRegisters = 6;

/// Who resumed the fiber that runs.
struct Resumer {
  void* stack_pointer = nullptr;
  void* fake_stack = nullptr;
  const void* stack_bottom = nullptr;
  std::size_t stack_bytes = 0;
  void* race_context = nullptr;
};
Resumer resumer;
Fiber* running = nullptr;

}  // namespace

/// The lowest page cannot be touched, so that an overflow faults.
Fiber::Fiber() {
  void* const memory = mmap(nullptr, kPage + kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    fail(ErrorKind::memory, "cuda:emulated: no memory for a thread's stack");
  mprotect(memory, kPage, PROT_NONE);
  stack_ = static_cast<char*>(memory) + kPage;
}

Fiber::~Fiber() {
  delete_race_context(race_context_);
  unpoison(stack_, kStackBytes);
  munmap(stack_ - kPage, kPage + kStackBytes);
}

void Fiber::start(void (*entry)()) {
  entry_ = entry;
  unpoison(stack_, kStackBytes);
  fake_stack_ = nullptr;
  delete_race_context(race_context_);
  race_context_ = new_race_context();
  // As graft_switch_stack leaves a stack: registers, then where to return to; one word more, so
  // that the stack is aligned as after a call.
  auto** const top = reinterpret_cast<void**>(stack_ + kStackBytes);
  top[-1] = nullptr;
  top[-2] = reinterpret_cast<void*>(&Fiber::begin);
  for (std::size_t i = 0; i < kSavedRegisters; ++i)
    top[-3 - static_cast<std::ptrdiff_t>(i)] = nullptr;
  stack_pointer_ = top - 2 - kSavedRegisters;
}

void Fiber::begin() {
  enter_stack(nullptr, &resumer.stack_bottom, &resumer.stack_bytes);
  running->entry_();
  std::abort();  // entries end in suspend_for_good
}

void Fiber::resume() {
  running = this;
  resumer.race_context = race_context();
  enter_race_context(race_context_);
  leave_stack(&resumer.fake_stack, stack_, kStackBytes);
  graft_switch_stack(&resumer.stack_pointer, stack_pointer_);
  enter_stack(resumer.fake_stack, nullptr, nullptr);
}

void Fiber::switch_out(bool for_good) {
  enter_race_context(resumer.race_context);
  leave_stack(for_good ? nullptr : &fake_stack_, resumer.stack_bottom, resumer.stack_bytes);
  graft_switch_stack(&stack_pointer_, resumer.stack_pointer);
  enter_stack(fake_stack_, &resumer.stack_bottom, &resumer.stack_bytes);
}

void Fiber::suspend() {
  running->switch_out(false);
}

void Fiber::suspend_for_good() {
  running->switch_out(true);
  std::abort();  // nobody resumes it
}

}  // namespace graft::emulated
