#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <concepts>
#include <cstdint>

#include "core/ops/kernels/prefetch.h"

namespace graft::reducing {

/// Rows added in the element type before they go into the wide accumulator.
inline constexpr std::int64_t kBlockRows = 16;

/// Reduces `rows` rows of `width` contiguous integers, `stride` apart, into `total`: four rows at a
/// time, so that totals are read and written less often.
template <class Op, std::integral T>
void reduce_columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width,
                    const T* /*shift*/, typename Op::Part* /*part*/, typename Op::Acc* total) {
  std::int64_t i = 0;
  for (; i + 3 < rows; i += 4, x += 4 * stride) {
    for (std::int64_t j = 0; j < width; ++j) {
      const auto at = [&](std::int64_t row) { return Op::map_one(x[row * stride + j]); };
      total[j] = Op::combine_one(
          total[j], Op::combine_one(Op::combine_one(at(0), at(1)), Op::combine_one(at(2), at(3))));
    }
  }
  for (; i < rows; ++i, x += stride) {
    for (std::int64_t j = 0; j < width; ++j) {
      total[j] = Op::combine_one(total[j], Op::map_one(x[j]));
    }
  }
}

/// The same of floats, through `part` for rows that are added in the element type.
template <class Op, std::floating_point T>
void reduce_columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width,
                    const T* shift, typename Op::Part* part_memory,
                    typename Op::Acc* total_memory) {
  using Rows = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
  Eigen::Map<Eigen::Array<typename Op::Part, Eigen::Dynamic, 1>> part(part_memory, width);
  Eigen::Map<Eigen::Array<typename Op::Acc, Eigen::Dynamic, 1>> total(total_memory, width);
  const Rows shifts(shift, width);
  const auto row = [&](std::int64_t index) {
    return Op::map(Rows(x + index * stride, width), shifts);
  };
  for (std::int64_t first = 0; first < rows; first += kBlockRows) {
    const std::int64_t last = std::min(rows, first + kBlockRows);
    part = Op::template identity<typename Op::Part>();
    std::int64_t i = first;
    for (; i + 3 < last; i += 4) {
      for (int ahead = 4; ahead < 8; ++ahead) prefetch_run(x + (i + ahead) * stride, width);
      part = Op::combine(
          part, Op::combine(Op::combine(row(i), row(i + 1)), Op::combine(row(i + 2), row(i + 3))));
    }
    for (; i < last; ++i) part = Op::combine(part, row(i));
    total = Op::combine(total, part.template cast<typename Op::Acc>());
  }
}

}  // namespace graft::reducing
