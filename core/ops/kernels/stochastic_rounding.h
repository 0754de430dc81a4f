#pragma once

#include <array>
#include <cstdint>

#include "core/base/float16.h"
#include "core/base/rng.h"

namespace graft {

/// Rounds numbers to one of the two bf16 numbers next to each: up with the probability that
/// makes the mean of the result the number itself. A sum that grows by less than half of its last
/// place so grows, on average, where rounding to nearest leaves it as it is. What bf16 holds stays,
/// zeros, denormals and infinities included; NaN stays NaN; a number next to infinity may become
/// it.
///
/// Sources: Gupta et al., "Deep Learning with Limited Numerical Precision", 2015; of what an
/// optimizer keeps, Zamirai et al., "Revisiting BFloat16 Training", 2020.
class StochasticRounding {
 public:
  /// Philox makes the key of all random bits, a hash of key and place those of an element: Philox
  /// for each element would take twice as long as all of the rounding.
  explicit StochasticRounding(const Philox& random) : key_(random.block(0)) {}

  /// `first`: the place of x[0] in its tensor. The bits of an element follow from its place alone,
  /// so they do not depend on how a tensor is cut into pieces.
  void operator()(const float* x, std::int64_t first, std::int64_t count, BFloat16* y) const;
  /// As f32.
  void operator()(const double* x, std::int64_t first, std::int64_t count, BFloat16* y) const;

 private:
  std::array<std::uint32_t, 4> key_;
};

}  // namespace graft
