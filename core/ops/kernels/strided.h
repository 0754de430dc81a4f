#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/width.h"

namespace graft {

/// A copy between two strided views of one shape: Transpose, Slice, Expand, Tile, Concat and Split
/// differ only in strides. Steps are counted in elements; a source step of 0 repeats, a negative
/// one reverses. No two target elements may coincide.
class StridedCopy {
 public:
  StridedCopy(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& target_steps,
              const std::vector<std::int64_t>& source_steps);

  /// `target` and `source` point to the views' first elements and must not overlap.
  template <class T>
  void run(T* target, const T* source) const {
    if (size_ == 0) return;
    const std::int64_t blocks = (middle_.dim + kBlock - 1) / kBlock;
    const std::int64_t work = std::min(kBlock, middle_.dim) * inner_.dim;
    if (outer_count_ == 1 && middle_.dim == 1) {
      parallel_for(inner_.dim, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
        copy_run(target + first * inner_.target, source + first * inner_.source, last - first);
      });
      return;
    }
    parallel_for(outer_count_ * blocks, kElementwiseGrain / work + 1,
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t item = first; item < last; ++item) {
                     copy_block(target, source, item / blocks, item % blocks * kBlock);
                   }
                 });
  }

 private:
  struct Axis {
    std::int64_t dim = 1;
    std::int64_t target = 0;
    std::int64_t source = 0;
  };
  static constexpr std::int64_t kBlock = 32;

  template <class T>
  void copy_run(T* target, const T* source, std::int64_t count) const {
    const std::int64_t ts = inner_.target;
    const std::int64_t ss = inner_.source;
    if (ts == 1 && ss == 1) {
      std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(T));
    } else if (ts == 1 && ss == 0) {
      std::fill_n(target, count, *source);
    } else {
      for (std::int64_t i = 0; i < count; ++i) target[i * ts] = source[i * ss];
    }
  }

  /// Rows [first, first + kBlock) of the middle axis.
  template <class T>
  void copy_block(T* target, const T* source, std::int64_t outer, std::int64_t first) const {
    for (std::size_t k = outer_.size(); k-- > 0;) {
      const std::int64_t at = outer % outer_[k].dim;
      outer /= outer_[k].dim;
      target += at * outer_[k].target;
      source += at * outer_[k].source;
    }
    target += first * middle_.target;
    source += first * middle_.source;
    const std::int64_t rows = std::min(kBlock, middle_.dim - first);
    if (crosses_) return transpose_block(target, source, rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      copy_run(target + row * middle_.target, source + row * middle_.source, inner_.dim);
    }
  }

  /// The target's inner axis is contiguous, the source's is the middle one: whole tiles go through
  /// registers, so that both sides move in full vectors.
  template <class T>
  void transpose_block(T* target, const T* source, std::int64_t rows) const {
    constexpr int kTile = sizeof(T) == 4 ? 16 : 8;
    using Tile = Eigen::Matrix<T, kTile, kTile, Eigen::RowMajor>;
    using Steps = Eigen::OuterStride<>;
    for (std::int64_t column = 0; column < inner_.dim; column += kTile) {
      const std::int64_t columns = std::min<std::int64_t>(kTile, inner_.dim - column);
      for (std::int64_t row = 0; row < rows; row += kTile) {
        T* const to = target + row * middle_.target + column;
        const T* const from = source + row + column * inner_.source;
        const std::int64_t height = std::min<std::int64_t>(kTile, rows - row);
        if constexpr (std::is_floating_point_v<T>) {
          if (columns == kTile && height == kTile) {
            Tile tile = Eigen::Map<const Tile, 0, Steps>(from, Steps(inner_.source));
            tile.transposeInPlace();
            Eigen::Map<Tile, 0, Steps>(to, Steps(middle_.target)) = tile;
            continue;
          }
        }
        for (std::int64_t r = 0; r < height; ++r) {
          for (std::int64_t c = 0; c < columns; ++c) {
            to[r * middle_.target + c] = from[r + c * inner_.source];
          }
        }
      }
    }
  }

  std::vector<Axis> outer_;  // outermost first
  Axis middle_;
  Axis inner_;
  std::int64_t outer_count_ = 1;
  std::int64_t size_ = 1;
  bool crosses_ = false;
};

/// Sets `count` elements, over all threads.
template <class T>
void fill_elements(T* target, std::int64_t count, T value) {
  parallel_for(count, 16384, [&](std::int64_t first, std::int64_t last) {
    std::fill(target + first, target + last, value);
  });
}

/// Copies input 0 to output 0, from `source_offset` on.
inline Kernel strided_kernel(DType dtype, const StridedCopy& copy, std::int64_t source_offset = 0) {
  Kernel kernel;
  visit_width(dtype, [&]<class T>() {
    kernel = [copy, source_offset](const KernelArgs& args) {
      copy.run(args.output<T>(), args.input<T>(0) + source_offset);
    };
  });
  return kernel;
}

}  // namespace graft
