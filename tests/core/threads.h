#pragma once

#include "core/base/parallel.h"

namespace graft::testing {

/// The number of threads of the loops while it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(thread_count()) { set_thread_count(count); }
  ~Threads() { set_thread_count(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace graft::testing
