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

/// Sees whether primitives that this thread runs while it lives meet a NaN where they clamp, on any
/// of their threads. Their max and min then give the bound in place of the NaN, but the processor
/// raises a flag (float_control_internal.h). One at a time.
class InvalidFlagWatch {
 public:
  /// Whether there are such flags.
  static bool is_possible();

  InvalidFlagWatch();
  ~InvalidFlagWatch();
  InvalidFlagWatch(const InvalidFlagWatch&) = delete;
  InvalidFlagWatch& operator=(const InvalidFlagWatch&) = delete;

  /// True at times without a NaN, too: for any arithmetic that has no result.
  bool met_nan() const;
};

}  // namespace graft
