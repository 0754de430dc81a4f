#pragma once

#include <simt.h>

#include <cstdint>
#include <initializer_list>

#include "core/ops/kernels/broadcast.h"

namespace graft {

/// Where operands that broadcast to one shape have what stands at an element of it. Neighbouring
/// axes along which all move alike are one.
class DeviceBroadcast {
 public:
  static constexpr int kMostAxes = 6;
  static constexpr int kMostOperands = 3;

  /// `operands`: at most three shapes.
  DeviceBroadcast(const Shape& result, std::initializer_list<Shape> operands) {
    std::vector<std::vector<std::int64_t>> steps;
    for (const Shape& operand : operands) steps.push_back(broadcast_strides(operand, result));
    for (int axis = 0; axis < result.rank() && fits(); ++axis) {
      if (result[axis] != 1) add_axis(result[axis], static_cast<std::size_t>(axis), steps);
    }
  }

  /// False where more axes remain than a kernel takes.
  bool fits() const { return axes_ <= kMostAxes; }

  /// The element of that operand; `operand` is known when this is compiled.
  __device__ std::int64_t place(int operand, std::int64_t i) const {
    std::int64_t at = 0;
    for (int axis = axes_; axis-- > 0;) {
      const std::int64_t outer = i / dims_[axis];
      at += (i - outer * dims_[axis]) * steps_[operand][axis];
      i = outer;
    }
    return at;
  }

 private:
  void add_axis(std::int64_t dim, std::size_t axis,
                const std::vector<std::vector<std::int64_t>>& steps) {
    bool merges = axes_ > 0;
    for (std::size_t k = 0; k < steps.size() && merges; ++k) {
      merges = steps_[k][axes_ - 1] == steps[k][axis] * dim;
    }
    if (!merges && ++axes_ > kMostAxes) return;
    dims_[axes_ - 1] = merges ? dims_[axes_ - 1] * dim : dim;
    for (std::size_t k = 0; k < steps.size(); ++k) steps_[k][axes_ - 1] = steps[k][axis];
  }

  int axes_ = 0;
  std::int64_t dims_[kMostAxes] = {};
  std::int64_t steps_[kMostOperands][kMostAxes] = {};
};

}  // namespace graft
