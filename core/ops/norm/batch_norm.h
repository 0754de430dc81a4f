#pragma once

#include <limits>
#include <utility>

#include "core/ops/kernel.h"
#include "core/ops/registry.h"

namespace graft {

/// x seen as [outer, channels, inner]. With inner == 1 (features, or channels last) rows of
/// channels are contiguous.
struct ChannelView {
  explicit ChannelView(const KernelRequest& request) {
    const Shape& x = request.shape();
    outer = x[0];
    channels = x.rank() > 1 ? x[1] : 1;
    inner = x.rank() > 2 ? x.size(2, x.rank()) : 1;
    if (request.layout() == Layout::channels_last) outer *= std::exchange(inner, 1);
    if (channels == 0 || inner == 0) outer = 0;  // nothing to walk
  }

  /// Elements of one channel.
  std::int64_t count() const { return outer * inner; }

  std::int64_t outer;
  std::int64_t channels;
  std::int64_t inner;
};

struct BatchNormSettings {
  explicit BatchNormSettings(const Attributes& attributes)
      : epsilon(static_cast<double>(attributes.get_float("epsilon", 1e-5F))),
        momentum(static_cast<double>(attributes.get_float("momentum", 0.9F))) {}
  double epsilon;
  double momentum;
};

/// The activation that a fused node applies to what it has normalized: a clamp to [lower, upper].
/// Its gradient passes above `lower` alone when strict (Relu), else within the bounds (Clip).
struct FusedActivation {
  explicit FusedActivation(const Attributes& attributes)
      : is_on(attributes.has("lower")),
        is_strict(attributes.get_int("strict", 0) != 0),
        lower(attributes.get_float("lower", 0.0F)),
        upper(attributes.get_float("upper", std::numeric_limits<float>::infinity())) {}

  template <class T>
  constexpr T apply(T x) const {
    const T raised = x < static_cast<T>(lower) ? static_cast<T>(lower) : x;
    return raised > static_cast<T>(upper) ? static_cast<T>(upper) : raised;
  }
  /// Whether the gradient at x, before the activation, passes.
  template <class T>
  constexpr bool passes(T x) const {
    if (is_strict) return x > static_cast<T>(lower);
    return !(x < static_cast<T>(lower)) && !(x > static_cast<T>(upper));
  }

  bool is_on;
  bool is_strict;
  float lower;
  float upper;
};

/// The fast kernels for f32 rows of channels.
void register_channels_last_batch_norm(KernelRegistry& registry);

}  // namespace graft
