#pragma once

#include <cstddef>

namespace graft::emulated {

/// A call stack of its own that one thread of the process enters and leaves: `resume` goes on where
/// the fiber last suspended itself. A switch takes some 30 ns.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next `resume` calls `entry`, which must end in `suspend_for_good`. What the fiber was
  /// about before is forgotten; destructors on its stack do not run.
  void start(void (*entry)());
  void resume();

  /// Back to who called `resume`; in the fiber that runs.
  static void suspend();
  [[noreturn]] static void suspend_for_good();

 private:
  static void begin();
  void switch_out(bool for_good);

  char* stack_;
  void* stack_pointer_ = nullptr;
  void (*entry_)() = nullptr;
  void* fake_stack_ = nullptr;    // of AddressSanitizer
  void* race_context_ = nullptr;  // of ThreadSanitizer
};

}  // namespace graft::emulated
