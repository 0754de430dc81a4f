#pragma once

#include <csignal>

namespace graft {

/// Signals to this thread wait while it exists, but for those that tell of a fault of the thread's
/// own (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS). For code whose stack pointer is not one
/// to a stack, onto which a handler would write its frame.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

/// The same for as long as the calling thread runs: its program's other threads take them.
void hold_signals_of_thread();

}  // namespace graft
