#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/window.h"

namespace graft {

/// For each tap along the width, the outputs that it serves. Those of small windows are kept:
/// divisions for each row would take longer than the pooling.
class Columns {
 public:
  Columns() = default;
  explicit Columns(const WindowAxis& width) : width_(width) {
    for (std::int64_t tap = 0; tap < std::min(kKept, width.kernel); ++tap) {
      kept_[static_cast<std::size_t>(tap)] = width.outputs_of_tap(tap);
    }
  }
  Span outputs(std::int64_t tap) const {
    return tap < kKept ? kept_[static_cast<std::size_t>(tap)] : width_.outputs_of_tap(tap);
  }
  /// Holds all taps that `count` outputs from `first` need.
  Span taps(std::int64_t first, std::int64_t count) const {
    if (width_.kernel <= kKept) return {0, width_.kernel};
    // Later outputs begin with earlier taps.
    return {width_.taps_of_output(first + count - 1).first, width_.taps_of_output(first).last};
  }

 private:
  static constexpr std::int64_t kKept = 16;
  WindowAxis width_;
  std::array<Span, kKept> kept_{};
};

/// The planes [N*C] and the windows over each.
struct PoolGeometry {
  /// Only for 1 to 3 spatial axes. Indices within a plane fit into 32 bits (see `fits`).
  PoolGeometry(const Node& node, const Shape& x) : planes(x[0] * x[1]) {
    const int rank = x.rank() - 2;
    const WindowAttributes window(node, rank);
    for (int i = 0; i < rank; ++i) {
      axes[static_cast<std::size_t>(3 - rank + i)] = window.axis(i, x[i + 2]);
    }
    columns = Columns(axes[2]);
    if (input_plane() == 0 && output_plane() == 0) planes = 0;  // nothing to walk
  }

  static bool fits(const Shape& x) {
    return x.rank() <= 5 && x.size(2, x.rank()) <= std::numeric_limits<std::int32_t>::max();
  }
  std::int64_t input_plane() const { return axes[0].input * axes[1].input * axes[2].input; }
  std::int64_t output_plane() const { return axes[0].output * axes[1].output * axes[2].output; }

  /// Calls body(plane) for all planes, over all threads.
  template <class Body>
  void for_each_plane(Body&& body) const {
    auto work = static_cast<double>(output_plane());  // which the taps may take beyond 64 bits
    for (const WindowAxis& axis : axes) {
      work *= static_cast<double>(std::min(axis.kernel, axis.input));
    }
    work = std::max({1.0, static_cast<double>(input_plane()), work});
    const auto grain = static_cast<std::int64_t>(static_cast<double>(kRowwiseGrain) / work);
    parallel_for(planes, grain + 1, [&](auto first, auto last) {
      for (std::int64_t plane = first; plane < last; ++plane) body(plane);
    });
  }

  std::int64_t planes;
  WindowAxes axes{};
  Columns columns;
};

/// Windows whose taps are the elements that an average counts.
inline WindowAxes counted_axes(WindowAxes axes, bool includes_padding) {
  for (WindowAxis& axis : axes) {
    if (!includes_padding) continue;
    // A window that ceil_mode lets run past the padding counts up to the padding's end.
    axis.input += axis.pad_begin + axis.pad_end;
    axis.pad_begin = 0;
    axis.pad_end = 0;
  }
  return axes;
}

/// A piece of one row of outputs, small enough for the stack.
struct RowPiece {
  static constexpr std::int64_t kMost = 128;
  std::int64_t depth;
  std::int64_t height;
  std::int64_t first;  ///< along the width
  std::int64_t count;
  std::int64_t y;  ///< offset of the first output within its plane
};

template <class Body>
void for_each_row_piece(const WindowAxes& axes, Body&& body) {
  const auto& [depth, height, width] = axes;
  std::int64_t y = 0;
  for (std::int64_t d = 0; d < depth.output; ++d) {
    for (std::int64_t h = 0; h < height.output; ++h) {
      for (std::int64_t first = 0; first < width.output; first += RowPiece::kMost) {
        const std::int64_t count = std::min(RowPiece::kMost, width.output - first);
        body(RowPiece{d, h, first, count, y});
        y += count;
      }
    }
  }
}

/// for_each_tap of a part of the piece, whose outputs need these taps along the width.
template <class Body>
void for_each_tap_of(const PoolGeometry& g, const RowPiece& piece, const Span& part,
                     const Span& columns, Body&& body) {
  const auto& [depth, height, width] = g.axes;
  const Span d = depth.taps_of_output(piece.depth);
  const Span h = height.taps_of_output(piece.height);
  for (std::int64_t kd = d.first; kd < d.last; ++kd) {
    for (std::int64_t kh = h.first; kh < h.last; ++kh) {
      const std::int64_t row =
          (depth.position(piece.depth, kd) * height.input + height.position(piece.height, kh)) *
          width.input;
      for (std::int64_t kw = columns.first; kw < columns.last; ++kw) {
        const Span all = g.columns.outputs(kw);
        const std::int64_t first = std::max(all.first, part.first);
        const std::int64_t count = std::min(all.last, part.last) - first;
        if (count <= 0) continue;
        const std::int64_t i = first - piece.first;
        const std::int64_t x = row + width.position(first, kw);
        if (width.stride == 1) {
          body(i, x, count, std::integral_constant<std::int64_t, 1>{});
        } else if (width.stride == 2) {
          body(i, x, count, std::integral_constant<std::int64_t, 2>{});
        } else {
          body(i, x, count, width.stride);
        }
      }
    }
  }
}

/// Calls body(i, x, count, stride) for each tap of the window, in row-major order: outputs
/// i ... i + count - 1 of the piece meet elements x, x + stride, ... of the plane. The stride is a
/// compile-time 1 or 2 where it can be, so that loops vectorise.
template <class Body>
void for_each_tap(const PoolGeometry& g, const RowPiece& piece, Body&& body) {
  const Span all{piece.first, piece.first + piece.count};
  const Span columns = g.columns.taps(piece.first, piece.count);
  if (columns.count() <= piece.count * g.axes[2].input) {
    return for_each_tap_of(g, piece, all, columns, body);
  }
  // Taps of windows far apart, of which most meet nothing: those of each output that do are fewer.
  for (std::int64_t output = all.first; output < all.last; ++output) {
    for_each_tap_of(g, piece, {output, output + 1}, g.columns.taps(output, 1), body);
  }
}

/// `taken` when `value` beats the maximum `best`, else `kept`. NaN beats all and is not beaten by
/// numbers. Two selections vectorise; one on "greater or NaN" does not.
template <class T, class U>
U if_greater(T value, T best, U taken, U kept) {
  const U chosen = value > best ? taken : kept;
  return value != value ? taken : chosen;
}

template <class T>
T greater_of(T best, T value) {
  return if_greater(value, best, value, best);
}

}  // namespace graft
