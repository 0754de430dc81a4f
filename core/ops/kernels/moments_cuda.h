#pragma once

#include "core/ops/kernels/math_cuda.h"
#include "core/ops/kernels/rows_cuda.h"

namespace graft {

/// As Moments and RootMeanSquare of core/ops/kernels/norm_row.h: x - mean is taken in two steps.
struct DeviceMoments {
  double mean = 0.0;
  double inv_std = 0.0;

  template <class T>
  __device__ T centered(T x) const {
    const T middle = static_cast<T>(mean);
    return x - middle - static_cast<T>(mean - static_cast<double>(middle));
  }
};

/// Of the elements x(i), i in [0, count), in two passes; without a mean where `is_centered` is
/// false. The mean of nothing is 0.
template <class Team, class X>
__device__ DeviceMoments moments_of(const Team& team, std::int64_t count, double epsilon,
                                    bool is_centered, X x) {
  DeviceMoments moments;
  const double share = count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
  const auto as_double = [&](std::int64_t i) { return static_cast<double>(x(i)); };
  if (is_centered) moments.mean = team_sum(team, count, as_double) * share;
  const double squares = team_sum(team, count, [&](std::int64_t i) {
    const double difference = as_double(i) - moments.mean;
    return difference * difference;
  });
  moments.inv_std = 1.0 / device_math::sqrt(squares * share + epsilon);
  return moments;
}

}  // namespace graft
