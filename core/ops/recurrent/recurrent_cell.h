#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

/// The point-wise part of recurrent cells, one sample of the batch at a time. F, G and H are
/// activations (recurrent_activation_internal.h).
namespace graft::recurrent {

/// What one direction of a call has beside the data of its steps.
template <class T>
struct CellParameters {
  std::int64_t hidden;
  bool couples_forget;
  /// One number a slot and hidden element: sums of the biases of W and R that are added together.
  const T* bias;
  /// LSTM: of the gates i, o, f.
  const T* peepholes;
};

/// One sample at one step.
template <class T>
struct ForwardRow {
  T* slots;            ///< in: the input's part of the gates; out: what is saved
  const T* recurrent;  ///< the product of this stage
  const T* h;          ///< before the step
  const T* c;
  T* next_h;
  T* next_c;
  T* reset_h;  ///< GRU: input of the second stage's product
};

template <class T>
struct BackwardRow {
  const T* slots;
  const T* h;  ///< before the step
  const T* c;
  const T* next_c;
  /// in: the gradient of h after the step; out: what reaches h before it other than by products
  T* dh;
  T* dc;              ///< in: of c after the step; out: of c before it
  T* input;           ///< out: the gradient of the gates as the input's product gave them
  T* recurrent;       ///< out: as the recurrent product gave them; `input` where both are the same
  T* reset_h;         ///< GRU: out, input of the second stage's product
  const T* reset_dh;  ///< GRU: its gradient
};

/// Gates [first, first + count) come from one recurrent product; those of a cell are computed in
/// this order, their gradients in the opposite one.
struct Stage {
  std::int64_t first;
  std::int64_t count;
};

/// A cell to those who run it, which are compiled once for all cells: that costs a call a row.
template <class T, class Row>
struct RowCell {
  std::span<const Stage> stages;
  bool has_c;
  bool splits_gates;
  std::function<void(int stage, const CellParameters<T>& p, const Row& row)> run;
};

inline constexpr std::size_t kMostStages = 2;

template <class T, class F, class G, class H>
struct Lstm {
  static constexpr std::array<Stage, 1> kStages{{{0, 4}}};
  static constexpr bool kHasC = true;
  static constexpr bool kSplitsGates = false;
  F f;
  G g;
  H h;

  void forward(int /*stage*/, const CellParameters<T>& p, const ForwardRow<T>& row) const {
    p.couples_forget ? forward_row<true>(p, row) : forward_row<false>(p, row);
  }
  void backward(int /*stage*/, const CellParameters<T>& p, const BackwardRow<T>& row) const {
    p.couples_forget ? backward_row<true>(p, row) : backward_row<false>(p, row);
  }

 private:
  // A choice within the loops would keep them from becoming vector instructions.
  template <bool couples>
  void forward_row(const CellParameters<T>& p, const ForwardRow<T>& row) const {
    const std::int64_t n = p.hidden;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const auto sum = [&](std::int64_t gate) {
        return row.slots[gate * n + j] + row.recurrent[gate * n + j] + p.bias[gate * n + j];
      };
      const T c = row.c[j];
      const T input = f.apply(sum(0) + p.peepholes[j] * c);
      const T forget = f.apply(sum(2) + p.peepholes[2 * n + j] * c);
      const T cell = g.apply(sum(3));
      const T keep = couples ? T{1} - f.value(input) : f.value(forget);
      const T next = keep * c + f.value(input) * g.value(cell);
      const T output = f.apply(sum(1) + p.peepholes[n + j] * next);
      row.next_c[j] = next;
      row.next_h[j] = f.value(output) * h.value(h.apply(next));
      row.slots[j] = input;
      row.slots[n + j] = output;
      row.slots[2 * n + j] = forget;
      row.slots[3 * n + j] = cell;
    }
  }

  template <bool couples>
  void backward_row(const CellParameters<T>& p, const BackwardRow<T>& row) const {
    const std::int64_t n = p.hidden;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const T input = row.slots[j];
      const T output = row.slots[n + j];
      const T forget = row.slots[2 * n + j];
      const T cell = row.slots[3 * n + j];
      const T c = row.c[j];
      const T squashed = h.apply(row.next_c[j]);
      const T doutput = row.dh[j] * h.value(squashed) * f.slope(output);
      const T dc = row.dc[j] + row.dh[j] * f.value(output) * h.slope(squashed) +
                   doutput * p.peepholes[n + j];
      const T keep = couples ? T{1} - f.value(input) : f.value(forget);
      const T dinput = dc * (couples ? g.value(cell) - c : g.value(cell)) * f.slope(input);
      const T dforget = couples ? T{0} : dc * c * f.slope(forget);
      row.dc[j] = dc * keep + dinput * p.peepholes[j] + dforget * p.peepholes[2 * n + j];
      row.dh[j] = T{0};
      row.input[j] = dinput;
      row.input[n + j] = doutput;
      row.input[2 * n + j] = dforget;
      row.input[3 * n + j] = dc * f.value(input) * g.slope(cell);
    }
  }
};

template <class T, class F>
struct Rnn {
  static constexpr std::array<Stage, 1> kStages{{{0, 1}}};
  static constexpr bool kHasC = false;
  static constexpr bool kSplitsGates = false;
  F f;

  void forward(int /*stage*/, const CellParameters<T>& p, const ForwardRow<T>& row) const {
#pragma omp simd
    for (std::int64_t j = 0; j < p.hidden; ++j) {
      const T saved = f.apply(row.slots[j] + row.recurrent[j] + p.bias[j]);
      row.slots[j] = saved;
      row.next_h[j] = f.value(saved);
    }
  }

  void backward(int /*stage*/, const CellParameters<T>& p, const BackwardRow<T>& row) const {
#pragma omp simd
    for (std::int64_t j = 0; j < p.hidden; ++j) {
      row.input[j] = row.dh[j] * f.slope(row.slots[j]);
      row.dh[j] = T{0};
    }
  }
};

}  // namespace graft::recurrent
