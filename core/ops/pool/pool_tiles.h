#pragma once

#include <algorithm>

#include "core/ops/pool/pool_geometry.h"

namespace graft {

// Pooling by windows of 2 x 2 that lie side by side, the commonest of all: straight loops over
// pairs of rows, several times as fast as the general ones.

/// Whole 2 x 2 windows without padding over single planes.
inline bool are_tiles(const WindowAxes& axes) {
  const auto is_pair = [](const WindowAxis& axis) {
    return axis.kernel == 2 && axis.stride == 2 && axis.dilation == 1 && axis.pad_begin == 0 &&
           axis.output * 2 <= axis.input;
  };
  return axes[0].input == 1 && axes[0].output == 1 && axes[0].kernel == 1 && is_pair(axes[1]) &&
         is_pair(axes[2]);
}

/// Calls body(x, y) with the offsets of each pair of input rows and of their row of outputs.
template <class Body>
void for_each_tile_row(const WindowAxes& axes, Body&& body) {
  for (std::int64_t h = 0; h < axes[1].output; ++h) {
    body(2 * h * axes[2].input, h * axes[2].output);
  }
}

template <class T>
void max_pool_tiles(const WindowAxes& axes, const T* x, T* y) {
  const std::int64_t width = axes[2].input;
  for_each_tile_row(axes, [&](std::int64_t from, std::int64_t to) {
    const T* const top = x + from;
    const T* const bottom = top + width;
    T* const row = y + to;
    for (std::int64_t i = 0; i < axes[2].output; ++i) {
      const T upper = greater_of(top[2 * i], top[2 * i + 1]);
      row[i] = greater_of(greater_of(upper, bottom[2 * i]), bottom[2 * i + 1]);
    }
  });
}

/// The gradient g of the maximum of a, b, c, d, shared out: all to the first maximum. Written with
/// selections of T alone, so that a loop of it vectorises.
template <class T>
void split_to_maximum(T a, T b, T c, T d, T g, T& to_a, T& to_b, T& to_c, T& to_d) {
  const T ab = greater_of(a, b);
  const T abc = greater_of(ab, c);
  const T among_ab = if_greater(b, a, T(1), T(0));
  const T among_abc = if_greater(c, ab, T(2), among_ab);
  const T winner = if_greater(d, abc, T(3), among_abc);
  to_a = winner == T(0) ? g : T(0);
  to_b = winner == T(1) ? g : T(0);
  to_c = winner == T(2) ? g : T(0);
  to_d = winner == T(3) ? g : T(0);
}

/// Collects tiles from the ends of rows until there are enough for a vector loop: one by one, each
/// would cost a mispredicted branch.
template <class T>
class TileBatch {
 public:
  TileBatch(std::int64_t width, const T* x, T* dx) : width_(width), x_(x), dx_(dx) {}

  void add(std::int64_t offset, T gradient) {
    offsets_[static_cast<std::size_t>(count_)] = offset;
    for (int k = 0; k < 4; ++k) x4_[k][count_] = x_[offset + corner(k)];
    gradients_[count_] = gradient;
    if (++count_ == kLanes) flush();
  }
  void flush() {
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) {
      split_to_maximum(x4_[0][i], x4_[1][i], x4_[2][i], x4_[3][i], gradients_[i], dx4_[0][i],
                       dx4_[1][i], dx4_[2][i], dx4_[3][i]);
    }
    for (int i = 0; i < count_; ++i) {
      for (int k = 0; k < 4; ++k) {
        dx_[offsets_[static_cast<std::size_t>(i)] + corner(k)] = dx4_[k][i];
      }
    }
    count_ = 0;
  }

 private:
  static constexpr int kLanes = 16;
  std::int64_t corner(int k) const {
    return k % 2 + k / 2 * width_;
  }

  std::int64_t width_;
  const T* x_;
  T* dx_;
  int count_ = 0;
  std::array<std::int64_t, kLanes> offsets_;
  T x4_[4][kLanes] = {};
  T dx4_[4][kLanes];
  T gradients_[kLanes] = {};
};

/// dx of one plane; the gradient goes to the first maximum.
template <class T>
void max_pool_grad_tiles(const WindowAxes& axes, const T* x, const T* dy, T* dx) {
  const std::int64_t width = axes[2].input;
  std::fill_n(dx, axes[1].input * width, T(0));
  constexpr std::int64_t kVector = 8;
  const std::int64_t whole = axes[2].output / kVector * kVector;
  TileBatch<T> batch(width, x, dx);
  for_each_tile_row(axes, [&](std::int64_t from, std::int64_t to) {
    const T* const top = x + from;
    const T* const bottom = top + width;
    T* const to_top = dx + from;
    T* const to_bottom = to_top + width;
#pragma omp simd
    for (std::int64_t i = 0; i < whole; ++i) {
      split_to_maximum(top[2 * i], top[2 * i + 1], bottom[2 * i], bottom[2 * i + 1], dy[to + i],
                       to_top[2 * i], to_top[2 * i + 1], to_bottom[2 * i], to_bottom[2 * i + 1]);
    }
    for (std::int64_t i = whole; i < axes[2].output; ++i) batch.add(from + 2 * i, dy[to + i]);
  });
  batch.flush();
}

template <class T>
void average_pool_tiles(const WindowAxes& axes, const T* x, T* y) {
  const std::int64_t width = axes[2].input;
  for_each_tile_row(axes, [&](std::int64_t from, std::int64_t to) {
    const T* const top = x + from;
    const T* const bottom = top + width;
    T* const row = y + to;
    for (std::int64_t i = 0; i < axes[2].output; ++i) {
      row[i] = (top[2 * i] + top[2 * i + 1] + bottom[2 * i] + bottom[2 * i + 1]) * T(0.25);
    }
  });
}

template <class T>
void average_pool_grad_tiles(const WindowAxes& axes, const T* dy, T* dx) {
  const std::int64_t width = axes[2].input;
  std::fill_n(dx, axes[1].input * width, T(0));
  for_each_tile_row(axes, [&](std::int64_t from, std::int64_t to) {
    const T* const gradient = dy + to;
    T* const top = dx + from;
    T* const bottom = top + width;
#pragma omp simd
    for (std::int64_t i = 0; i < axes[2].output; ++i) {
      const T g = gradient[i] * T(0.25);
      top[2 * i] = g;
      top[2 * i + 1] = g;
      bottom[2 * i] = g;
      bottom[2 * i + 1] = g;
    }
  });
}

}  // namespace graft
