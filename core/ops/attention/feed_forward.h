#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/ops/kernel.h"

namespace graft::feed_forward {

/// Where operands stand among the inputs of FeedForward and FeedForwardGrad.
enum Input { kX, kW1, kW2, kForwardB1 = 3, kForwardB2, kGradDy = 3, kGradB1 };

/// x: [rows, width], hidden values: [rows, hidden], y: [rows, columns].
struct Sizes {
  explicit Sizes(const KernelRequest& request);

  std::int64_t rows;
  std::int64_t width;
  std::int64_t hidden;
  std::int64_t columns;
};

/// The activation of hidden values and its gradient, by the runs that their own kernels consist of.
class Activation {
 public:
  /// Of the op that attribute `activation` names.
  explicit Activation(const KernelRequest& request);

  /// a = f(h), `count` elements.
  void apply(std::int64_t count, const void* h, void* a) const;
  /// dh = da f'(h), where a = f(h); dh may be da.
  void apply_gradient(std::int64_t count, const void* h, const void* a, const void* da,
                      void* dh) const;

 private:
  RunFunction forward_;
  RunFunction backward_;
  bool backward_reads_a_;  ///< instead of h
};

}  // namespace graft::feed_forward
