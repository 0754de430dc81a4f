#pragma once

#include "core/ops/recurrent/recurrent_cell.h"

namespace graft::recurrent {

/// Gates z, r, h. The product with R_h follows the reset: two products a step.
template <class T, class F, class G>
struct Gru {
  static constexpr std::array<Stage, 2> kStages{{{0, 2}, {2, 1}}};
  static constexpr bool kHasC = false;
  static constexpr bool kSplitsGates = false;
  F f;
  G g;

  void forward(int stage, const CellParameters<T>& p, const ForwardRow<T>& row) const {
    const std::int64_t n = p.hidden;
    if (stage == 0) {
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) {
        const T update = f.apply(row.slots[j] + row.recurrent[j] + p.bias[j]);
        const T reset = f.apply(row.slots[n + j] + row.recurrent[n + j] + p.bias[n + j]);
        row.slots[j] = update;
        row.slots[n + j] = reset;
        row.reset_h[j] = f.value(reset) * row.h[j];
      }
      return;
    }
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T candidate = g.apply(row.slots[2 * n + j] + row.recurrent[j] + p.bias[2 * n + j]);
      const T z = f.value(row.slots[j]);
      row.slots[2 * n + j] = candidate;
      row.next_h[j] = (T{1} - z) * g.value(candidate) + z * row.h[j];
    }
  }

  void backward(int stage, const CellParameters<T>& p, const BackwardRow<T>& row) const {
    const std::int64_t n = p.hidden;
    if (stage == 0) {
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) {
        const T z = f.value(row.slots[j]);
        const T candidate = row.slots[2 * n + j];
        const T dh = row.dh[j];
        row.input[j] = dh * (row.h[j] - g.value(candidate)) * f.slope(row.slots[j]);
        row.input[2 * n + j] = dh * (T{1} - z) * g.slope(candidate);
        row.dh[j] = dh * z;
      }
      return;
    }
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T reset = row.slots[n + j];
      row.input[n + j] = row.reset_dh[j] * row.h[j] * f.slope(reset);
      row.reset_h[j] = f.value(reset) * row.h[j];
      row.dh[j] += row.reset_dh[j] * f.value(reset);
    }
  }
};

/// linear_before_reset: one product a step. The fourth slot holds R_h h + Rb_h, as the fourth part
/// of the bias does Rb_h.
template <class T, class F, class G>
struct LinearGru {
  static constexpr std::array<Stage, 1> kStages{{{0, 3}}};
  static constexpr bool kHasC = false;
  static constexpr bool kSplitsGates = true;
  F f;
  G g;

  void forward(int /*stage*/, const CellParameters<T>& p, const ForwardRow<T>& row) const {
    const std::int64_t n = p.hidden;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T update = f.apply(row.slots[j] + row.recurrent[j] + p.bias[j]);
      const T reset = f.apply(row.slots[n + j] + row.recurrent[n + j] + p.bias[n + j]);
      const T linear = row.recurrent[2 * n + j] + p.bias[3 * n + j];
      const T candidate =
          g.apply(row.slots[2 * n + j] + p.bias[2 * n + j] + f.value(reset) * linear);
      const T z = f.value(update);
      row.next_h[j] = (T{1} - z) * g.value(candidate) + z * row.h[j];
      row.slots[j] = update;
      row.slots[n + j] = reset;
      row.slots[2 * n + j] = candidate;
      row.slots[3 * n + j] = linear;
    }
  }

  void backward(int /*stage*/, const CellParameters<T>& p, const BackwardRow<T>& row) const {
    const std::int64_t n = p.hidden;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T z = f.value(row.slots[j]);
      const T reset = row.slots[n + j];
      const T candidate = row.slots[2 * n + j];
      const T dh = row.dh[j];
      const T dcandidate = dh * (T{1} - z) * g.slope(candidate);
      const T dupdate = dh * (row.h[j] - g.value(candidate)) * f.slope(row.slots[j]);
      const T dreset = dcandidate * row.slots[3 * n + j] * f.slope(reset);
      row.dh[j] = dh * z;
      row.input[j] = dupdate;
      row.input[n + j] = dreset;
      row.input[2 * n + j] = dcandidate;
      row.recurrent[j] = dupdate;
      row.recurrent[n + j] = dreset;
      row.recurrent[2 * n + j] = dcandidate * f.value(reset);
    }
  }
};

}  // namespace graft::recurrent
