#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <concepts>
#include <cstdint>

#include "core/ops/kernels/reduce_ops.h"

namespace graft {

/// Reduces n contiguous integers.
template <class Op, std::integral T>
typename Op::Acc reduce_row(const T* x, std::int64_t n, T /*shift*/) {
  auto total = Op::template identity<typename Op::Acc>();
  for (std::int64_t i = 0; i < n; ++i) total = Op::combine_one(total, Op::map_one(x[i]));
  return total;
}

/// Reduces n contiguous floats, in an order that depends on n alone: lanes side by side within a
/// block, blocks in the wide accumulator.
template <class Op, std::floating_point T>
typename Op::Acc reduce_row(const T* x, std::int64_t n, T shift) {
  using Part = typename Op::Part;
  constexpr int kLanes = 64;
  constexpr std::int64_t kBlock = 16 * kLanes;
  using Lanes = Eigen::Array<T, kLanes, 1>;
  const Lanes shifts = Lanes::Constant(shift);
  const auto lanes_at = [&](std::int64_t i) { return Eigen::Map<const Lanes>(x + i); };
  auto total = Op::template identity<typename Op::Acc>();
  std::int64_t i = 0;
  while (n - i >= kLanes) {
    const std::int64_t last = i + std::min(kBlock, (n - i) / kLanes * kLanes);
    Eigen::Array<Part, kLanes, 1> lanes = Op::map(lanes_at(i), shifts);
    for (i += kLanes; i < last; i += kLanes) {
      lanes = Op::combine(lanes, Op::map(lanes_at(i), shifts)).eval();
    }
    Eigen::Array<Part, kLanes / 4, 1> quarter =
        Op::combine(Op::combine(lanes.template segment<16>(0), lanes.template segment<16>(16)),
                    Op::combine(lanes.template segment<16>(32), lanes.template segment<16>(48)));
    for (int lane = 0; lane < kLanes / 4; ++lane) {
      total = Op::combine_one(total, static_cast<typename Op::Acc>(quarter(lane)));
    }
  }
  using One = Eigen::Array<T, 1, 1>;
  const One one_shift = One::Constant(shift);
  for (; i < n; ++i) {
    const Eigen::Array<Part, 1, 1> mapped = Op::map(Eigen::Map<const One>(x + i), one_shift);
    total = Op::combine_one(total, static_cast<typename Op::Acc>(mapped(0)));
  }
  return total;
}

}  // namespace graft
