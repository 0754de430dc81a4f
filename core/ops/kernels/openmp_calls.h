#pragma once

namespace graft {

/// While it lives, primitives of oneDNN that this thread makes are made for `count` threads.
class OnednnThreads {
 public:
  explicit OnednnThreads(int count);
  ~OnednnThreads();
  OnednnThreads(const OnednnThreads&) = delete;
  OnednnThreads& operator=(const OnednnThreads&) = delete;

 private:
  int saved_;
};

}  // namespace graft
