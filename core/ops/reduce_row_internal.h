#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

#include "core/ops/reduce_ops_internal.h"

namespace graft {

/// The first `count` elements at x (at most kLanes), and `fill` in the other lanes. `omp simd`
/// makes these masked loads and stores where the CPU has them.
template <int kLanes, class T>
Eigen::Array<T, kLanes, 1> load_lanes(const T* x, std::int64_t count, T fill) {
  const auto few = static_cast<int>(std::min<std::int64_t>(count, kLanes));
  Eigen::Array<T, kLanes, 1> lanes;
  T* const out = lanes.data();
#pragma omp simd
  for (int i = 0; i < kLanes; ++i) out[i] = i < few ? x[i] : fill;
  return lanes;
}

/// Writes the first `count` lanes (at most kLanes).
template <int kLanes, class T>
void store_lanes(const Eigen::Array<T, kLanes, 1>& lanes, std::int64_t count, T* y) {
  const auto few = static_cast<int>(std::min<std::int64_t>(count, kLanes));
  const T* const in = lanes.data();
#pragma omp simd
  for (int i = 0; i < kLanes; ++i) {
    if (i < few) y[i] = in[i];
  }
}

/// Combines all lanes, halves first.
template <class Op, int kLanes, class Part>
Part fold_lanes(const Eigen::Array<Part, kLanes, 1>& lanes) {
  if constexpr (kLanes == 1) {
    return lanes(0);
  } else {
    const Eigen::Array<Part, kLanes / 2, 1> half = Op::combine(
        lanes.template head<kLanes / 2>().eval(), lanes.template tail<kLanes / 2>().eval());
    return fold_lanes<Op, kLanes / 2, Part>(half);
  }
}

/// Reduces n contiguous elements, in an order that depends on n alone: lanes side by side within a
/// block, blocks in the wide accumulator.
template <class Op, class T>
typename Op::Acc reduce_row(const T* x, std::int64_t n, T shift) {
  using Part = typename Op::Part;
  using Acc = typename Op::Acc;
  constexpr int kLanes = 64;
  constexpr std::int64_t kBlock = 16 * kLanes;
  using Lanes = Eigen::Array<T, kLanes, 1>;
  const Lanes shifts = Lanes::Constant(shift);
  const auto lanes_at = [&](std::int64_t i) { return Eigen::Map<const Lanes>(x + i); };
  auto total = Op::template identity<Acc>();
  std::int64_t i = 0;
  while (n - i >= kLanes) {
    const std::int64_t last = i + std::min(kBlock, (n - i) / kLanes * kLanes);
    Eigen::Array<Part, kLanes, 1> lanes = Op::map(lanes_at(i), shifts);
    for (i += kLanes; i < last; i += kLanes) {
      lanes = Op::combine(lanes, Op::map(lanes_at(i), shifts)).eval();
    }
    total = Op::combine_one(total, static_cast<Acc>(fold_lanes<Op, kLanes, Part>(lanes)));
  }
  if (i == n) return total;
  constexpr int kFew = 16;
  const auto neutral = Op::template identity<Part>();
  using Few = Eigen::Array<Part, kFew, 1>;
  Few few = Few::Constant(neutral);
  for (; i < n; i += kFew) {
    Few mapped = Op::map(load_lanes<kFew>(x + i, n - i, shift), shifts.template head<kFew>());
    mapped = load_lanes<kFew>(mapped.data(), n - i, neutral);
    few = Op::combine(few, mapped).eval();
  }
  return Op::combine_one(total, static_cast<Acc>(fold_lanes<Op, kFew, Part>(few)));
}

}  // namespace graft
