#pragma once

#include <algorithm>
#include <cstring>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/lanes.h"
#include "core/ops/norm/batch_norm.h"

namespace graft {

/// What follows the normalization: nothing, or a clamp (see FusedActivation).
enum class Clamp { none, strict, within };

/// Calls make.operator()<clamp>().
template <class Make>
Kernel with_clamp(const FusedActivation& activation, Make&& make) {
  if (!activation.is_on) return make.template operator()<Clamp::none>();
  if (activation.is_strict) return make.template operator()<Clamp::strict>();
  return make.template operator()<Clamp::within>();
}

/// y = clamp((x - mean) * slope + bias) of some channels, and which gradients pass.
template <int lanes, Clamp clamp>
struct ChannelAffine {
  using V = Lanes<lanes>;

  V at(V x) const { return (x - mean) * slope + bias; }

  V clamped(V x, const FusedActivation& activation) const {
    const V t = at(x);
    if constexpr (clamp == Clamp::none) return t;
    const V low = V{} + activation.lower;
    const V high = V{} + activation.upper;
    const V raised = t < low ? low : t;
    return raised > high ? high : raised;
  }
  /// dy where the clamp lets it pass, else 0.
  V passed(V x, V dy, const FusedActivation& activation) const {
    if constexpr (clamp == Clamp::none) return dy;
    const V t = at(x);
    const V zero{};
    const V low = V{} + activation.lower;
    if constexpr (clamp == Clamp::strict) return t > low ? dy : zero;
    const V above = t < low ? zero : dy;
    return t > V{} + activation.upper ? zero : above;
  }

  V mean;
  V slope;
  V bias;
};

/// [rows, channels], cut into chunks of rows.
struct ChannelRows {
  explicit ChannelRows(const ChannelView& view) : count(view.outer), channels(view.channels) {
    constexpr std::int64_t kMostChunks = 64;
    chunks = std::clamp<std::int64_t>(count * channels / kElementwiseGrain, 1, kMostChunks);
  }

  /// Calls body(chunk, first row, last row) over all threads.
  template <class Body>
  void for_each_chunk(Body&& body) const {
    parallel_for(chunks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t chunk = first; chunk < last; ++chunk) {
        body(chunk, chunk * count / chunks, (chunk + 1) * count / chunks);
      }
    });
  }
  /// The same, each thread from its last chunk to its first: body(first row, last row).
  template <class Body>
  void for_each_chunk_backwards(Body&& body) const {
    parallel_for(chunks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t chunk = last - 1; chunk >= first; --chunk) {
        body(chunk * count / chunks, (chunk + 1) * count / chunks);
      }
    });
  }

  /// Calls body.operator()<lanes, vectors>(channel, first row, last row) for strips of
  /// lanes * vectors channels: few enough rows to stay in the cache while all channels pass by, and
  /// vectors enough for sums that need not wait for one another.
  template <class Body>
  void for_each_tile(std::int64_t first, std::int64_t last, Body&& body) const {
    const std::int64_t tile = std::max<std::int64_t>(8, 8192 / std::max<std::int64_t>(1, channels));
    for (; first < last; first += tile) {
      const std::int64_t end = std::min(last, first + tile);
      std::int64_t c = 0;
      constexpr int kLanes = kRegisterLanes;
      for (; c + 64 <= channels; c += 64)
        body.template operator()<kLanes, 64 / kLanes>(c, first, end);
      for (; c + 32 <= channels; c += 32)
        body.template operator()<kLanes, 32 / kLanes>(c, first, end);
      for_each_lanes(channels - c, [&]<int lanes>(std::int64_t i) {
        body.template operator()<lanes, 1>(c + i, first, end);
      });
    }
  }

  std::int64_t count;
  std::int64_t channels;
  std::int64_t chunks;
};

/// Parts of the workspace: two sums a channel and chunk, then rows of coefficients.
class ChannelScratch {
 public:
  ChannelScratch(const ChannelRows& rows, void* workspace)
      : channels_(rows.channels),
        chunks_(rows.chunks),
        sums_(static_cast<double*>(workspace)),
        floats_(reinterpret_cast<float*>(sums_ + 2 * channels_ * chunks_)) {}
  static std::size_t bytes(const ChannelRows& rows, int coefficients) {
    return static_cast<std::size_t>(rows.channels) *
           (static_cast<std::size_t>(rows.chunks) * 2 * sizeof(double) +
            static_cast<std::size_t>(coefficients) * sizeof(float));
  }
  double* sums(std::int64_t chunk, int which) const {
    return sums_ + (2 * chunk + which) * channels_;
  }
  float* coefficients(int which) const { return floats_ + which * channels_; }
  /// Adds up the sums of all chunks, in those of the first.
  void add_up() const {
    double* const totals = sums(0, 0);
    for (std::int64_t chunk = 1; chunk < chunks_; ++chunk) {
      const double* const part = sums(chunk, 0);
      for (std::int64_t i = 0; i < 2 * channels_; ++i) totals[i] += part[i];
    }
  }

 private:
  std::int64_t channels_;
  std::int64_t chunks_;
  double* sums_;
  float* floats_;
};

}  // namespace graft
