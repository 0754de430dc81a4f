#pragma once

#include "core/base/limits.h"

namespace graft::testing {

/// Other limits while it lives.
class OtherLimits {
 public:
  explicit OtherLimits(const Limits& changed) : before_(limits()) { set_limits(changed); }
  ~OtherLimits() { set_limits(before_); }
  OtherLimits(const OtherLimits&) = delete;
  OtherLimits& operator=(const OtherLimits&) = delete;

 private:
  Limits before_;
};

}  // namespace graft::testing
