#pragma once

#include <cstdint>

#include "core/ops/kernel.h"

namespace graft {

/// What ReverseSequence walks: x [samples, steps, inner] if `batch_first`, else [steps, samples,
/// inner].
struct SequenceLayout {
  explicit SequenceLayout(const KernelRequest& request) {
    const Shape& shape = request.shape();
    batch_first = request.attributes().get_int("batch_axis", 1) == 0;
    samples = shape[batch_first ? 0 : 1];
    steps = shape[batch_first ? 1 : 0];
    inner = shape.size(2, shape.rank());
  }

  /// Which run of `inner` elements that is.
  constexpr std::int64_t row(std::int64_t sample, std::int64_t step) const {
    return batch_first ? sample * steps + step : step * samples + sample;
  }

  bool batch_first = false;
  std::int64_t samples = 0;
  std::int64_t steps = 0;
  std::int64_t inner = 0;
};

}  // namespace graft
