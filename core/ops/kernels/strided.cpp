#include "core/ops/kernels/strided.h"

#include <Eigen/Core>
#include <cstring>

namespace graft {

StridedCopy::StridedCopy(const std::vector<std::int64_t>& dims,
                         const std::vector<std::int64_t>& target_steps,
                         const std::vector<std::int64_t>& source_steps) {
  if (std::ranges::find(dims, 0) != dims.end()) {
    size_ = 0;
    return;
  }
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Axis axis{dims[i], target_steps[i], source_steps[i]};
    size_ *= axis.dim;
    if (axis.dim == 1) continue;
    if (!axes.empty() && axes.back().target == axis.target * axis.dim &&
        axes.back().source == axis.source * axis.dim) {
      axes.back() = {axes.back().dim * axis.dim, axis.target, axis.source};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  inner_ = axes.back();
  axes.pop_back();
  if (axes.empty()) return;
  auto middle = axes.end() - 1;
  if (inner_.target == 1 && inner_.source > 1) {
    const auto contiguous = std::ranges::find(axes, 1, &Axis::source);
    crosses_ = contiguous != axes.end();
    if (crosses_) middle = contiguous;
  }
  middle_ = *middle;
  axes.erase(middle);
  outer_ = std::move(axes);
  for (const Axis& axis : outer_) outer_count_ *= axis.dim;
}

template <class T>
void StridedCopy::copy_run(T* target, const T* source, std::int64_t count) const {
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
void StridedCopy::copy_block(T* target, const T* source, std::int64_t outer,
                             std::int64_t first) const {
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
void StridedCopy::transpose_block(T* target, const T* source, std::int64_t rows) const {
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

template <class T>
void StridedCopy::run(T* target, const T* source) const {
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

template void StridedCopy::run(std::uint8_t*, const std::uint8_t*) const;
template void StridedCopy::run(std::uint16_t*, const std::uint16_t*) const;
template void StridedCopy::run(float*, const float*) const;
template void StridedCopy::run(double*, const double*) const;
template void StridedCopy::run(Wide*, const Wide*) const;
template void StridedCopy::run(std::uint32_t*, const std::uint32_t*) const;
template void StridedCopy::run(std::uint64_t*, const std::uint64_t*) const;

Kernel strided_kernel(DType dtype, const StridedCopy& copy, std::int64_t source_offset) {
  Kernel kernel;
  visit_width(dtype, [&]<class T>() {
    kernel = [copy, source_offset](const KernelArgs& args) {
      copy.run(args.output<T>(), args.input<T>(0) + source_offset);
    };
  });
  return kernel;
}

}  // namespace graft
