#include "core/base/held_signals.h"

#include <initializer_list>

namespace graft {
namespace {

sigset_t all_but_faults() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    sigdelset(&signals, fault);
  }
  return signals;
}

}  // namespace

HeldSignals::HeldSignals() {
  const sigset_t held = all_but_faults();
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void hold_signals_of_thread() {
  const sigset_t held = all_but_faults();
  pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

}  // namespace graft
