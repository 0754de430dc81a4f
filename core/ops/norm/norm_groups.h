#pragma once

#include <cstdint>

#include "core/ops/kernel.h"

namespace graft {

/// What a group or instance normalization, or the gradient of one, normalizes: x seen as [samples,
/// groups, channels of a group, inner], a group of a sample one contiguous run.
struct NormGroups {
  /// `input`: which one is x. Without groups, each channel is one.
  NormGroups(const KernelRequest& request, int input, bool has_groups) {
    const Shape& x = request.shape(input);
    all_channels = x[1];
    groups = has_groups ? request.attributes().get_int("num_groups", 1) : x[1];
    epsilon = static_cast<double>(request.attributes().get_float("epsilon", 1e-5F));
    if (x.size() == 0) return;  // nothing to walk; products of the other dims could overflow
    samples = x[0];
    channels = x[1] / groups;
    inner = x.size(2, x.rank());
  }

  std::int64_t count() const { return samples * groups; }
  /// Elements of one group of one sample.
  std::int64_t size() const { return channels * inner; }

  std::int64_t all_channels;
  std::int64_t groups;
  std::int64_t samples = 0;
  std::int64_t channels = 0;
  std::int64_t inner = 0;
  double epsilon;
};

}  // namespace graft
