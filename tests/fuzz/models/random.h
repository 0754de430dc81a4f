#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/rng.h"

namespace graft::fuzz {

/// Draws one number after the other.
class Random {
 public:
  explicit Random(std::uint64_t seed) : philox_(seed) {}

  /// In [0, bound); 0 when there is nothing to choose from.
  std::size_t below(std::size_t bound) {
    return bound == 0 ? 0 : static_cast<std::size_t>(philox_.below(drawn_++, bound));
  }
  bool one_in(std::size_t count) { return below(count) == 0; }
  double uniform() { return philox_.uniform_double(drawn_++); }
  /// There must be one.
  template <class T>
  const T& of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  Philox philox_;
  std::uint64_t drawn_ = 0;
};

}  // namespace graft::fuzz
