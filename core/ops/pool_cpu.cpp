#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "core/ops/registry.h"
#include "core/ops/window.h"

namespace graft {
namespace {

using PoolTypes = TypeList<float, double, std::int8_t, std::uint8_t>;

/// The planes [N*C] and the windows over each.
struct PoolGeometry {
  /// Only for 1 to 3 spatial axes. Indices within a plane fit into 32 bits (see `fits`).
  PoolGeometry(const Node& node, const Shape& x) : planes(x[0] * x[1]) {
    const int rank = x.rank() - 2;
    const WindowAttributes window(node, rank);
    for (int i = 0; i < rank; ++i) {
      axes[static_cast<std::size_t>(3 - rank + i)] = window.axis(i, x[i + 2]);
    }
  }

  static bool fits(const Shape& x) {
    return x.rank() <= 5 && x.size(2, x.rank()) <= std::numeric_limits<std::int32_t>::max();
  }
  std::int64_t input_plane() const { return axes[0].input * axes[1].input * axes[2].input; }
  std::int64_t output_plane() const { return axes[0].output * axes[1].output * axes[2].output; }

  /// Calls body(plane) for all planes, over all threads.
  template <class Body>
  void for_each_plane(Body&& body) const {
    constexpr std::int64_t kElementsWorthAThread = 8192;
    const std::int64_t taps = axes[0].kernel * axes[1].kernel * axes[2].kernel;
    const std::int64_t work =
        std::max<std::int64_t>({1, input_plane(), std::min(taps, input_plane()) * output_plane()});
    parallel_for(planes, kElementsWorthAThread / work + 1, [&](auto first, auto last) {
      for (std::int64_t plane = first; plane < last; ++plane) body(plane);
    });
  }

  std::int64_t planes;
  WindowAxes axes{};
};

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

/// Calls body(i, x, count, stride) for each tap of the window, in row-major order: outputs
/// i ... i + count - 1 of the piece meet elements x, x + stride, ... of the plane. The stride is a
/// compile-time 1 or 2 where it can be, so that loops vectorise.
template <class Body>
void for_each_tap(const WindowAxes& axes, const RowPiece& piece, Body&& body) {
  const auto& [depth, height, width] = axes;
  const Span d = depth.taps_of_output(piece.depth);
  const Span h = height.taps_of_output(piece.height);
  // Later outputs begin with earlier taps; none needs a tap outside of this range.
  const std::int64_t first_tap = width.taps_of_output(piece.first + piece.count - 1).first;
  const std::int64_t last_tap = width.taps_of_output(piece.first).last;
  for (std::int64_t kd = d.first; kd < d.last; ++kd) {
    for (std::int64_t kh = h.first; kh < h.last; ++kh) {
      const std::int64_t row =
          (depth.position(piece.depth, kd) * height.input + height.position(piece.height, kh)) *
          width.input;
      for (std::int64_t kw = first_tap; kw < last_tap; ++kw) {
        const Span all = width.outputs_of_tap(kw);
        const std::int64_t first = std::max(all.first, piece.first);
        const std::int64_t count = std::min(all.last, piece.first + piece.count) - first;
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

template <class T>
constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                           : std::numeric_limits<T>::lowest();

template <class T>
void max_pool(const PoolGeometry& g, const T* x, T* y) {
  g.for_each_plane([&](std::int64_t plane) {
    const T* const from = x + plane * g.input_plane();
    T* const to = y + plane * g.output_plane();
    for_each_row_piece(g.axes, [&](const RowPiece& piece) {
      T* const row = to + piece.y;
      std::fill_n(row, piece.count, kLowest<T>);
      for_each_tap(g.axes, piece, [&](auto i, auto at, auto count, auto stride) {
        for (std::int64_t k = 0; k < count; ++k) {
          const T value = from[at + k * stride];
          // NaN wins.
          row[i + k] = (value > row[i + k]) | (value != value) ? value : row[i + k];
        }
      });
    });
  });
}

/// Where the maximum of each window of a piece lies in the plane; -1 for a window without elements.
template <class T>
struct RowArgmax {
  std::array<T, RowPiece::kMost> best;
  std::array<std::int32_t, RowPiece::kMost> index;

  void find(const WindowAxes& axes, const RowPiece& piece, const T* x) {
    std::fill_n(best.begin(), piece.count, kLowest<T>);
    std::fill_n(index.begin(), piece.count, -1);
    for_each_tap(axes, piece, [&](auto i, auto at, auto count, auto stride) {
      T* const b = best.data() + i;
      std::int32_t* const found = index.data() + i;
      for (std::int64_t k = 0; k < count; ++k) {
        const T value = x[at + k * stride];
        const bool is_better = (value > b[k]) | (value != value) | (found[k] < 0);
        b[k] = is_better ? value : b[k];
        found[k] = is_better ? static_cast<std::int32_t>(at + k * stride) : found[k];
      }
    });
  }
};

/// Position `index` of a row-major plane in column-major order: the first spatial axis runs
/// fastest.
std::int64_t column_major(const WindowAxes& axes, std::int64_t index) {
  const std::int64_t w = index % axes[2].input;
  const std::int64_t h = index / axes[2].input % axes[1].input;
  const std::int64_t d = index / axes[2].input / axes[1].input;
  return d + axes[0].input * (h + axes[1].input * w);
}

template <class T>
void max_pool_with_indices(const PoolGeometry& g, bool is_column_major, const T* x, T* y,
                           std::int64_t* indices) {
  g.for_each_plane([&](std::int64_t plane) {
    const std::int64_t start = plane * g.input_plane();
    for_each_row_piece(g.axes, [&](const RowPiece& piece) {
      RowArgmax<T> row;
      row.find(g.axes, piece, x + start);
      const std::int64_t at = plane * g.output_plane() + piece.y;
      std::copy_n(row.best.begin(), piece.count, y + at);
      for (std::int64_t i = 0; i < piece.count; ++i) {
        const std::int64_t index = row.index[static_cast<std::size_t>(i)];
        indices[at + i] = start + (is_column_major ? column_major(g.axes, index) : index);
      }
    });
  });
}

template <class T>
void max_pool_grad(const PoolGeometry& g, const T* x, const T* dy, T* dx) {
  g.for_each_plane([&](std::int64_t plane) {
    const T* const from = dy + plane * g.output_plane();
    T* const to = dx + plane * g.input_plane();
    std::fill_n(to, g.input_plane(), T(0));
    for_each_row_piece(g.axes, [&](const RowPiece& piece) {
      RowArgmax<T> row;
      row.find(g.axes, piece, x + plane * g.input_plane());
      for (std::int64_t i = 0; i < piece.count; ++i) {
        const std::int32_t index = row.index[static_cast<std::size_t>(i)];
        if (index >= 0) to[index] += from[piece.y + i];
      }
    });
  });
}

/// Divides each output of a piece by the number of elements in its window.
class AverageDivisor {
 public:
  AverageDivisor(const WindowAxes& axes, bool includes_padding)
      : axes_(axes), includes_padding_(includes_padding) {}

  /// to[i] = from[i] / count.
  template <class T>
  void divide(const RowPiece& piece, const T* from, T* to) const {
    const std::int64_t rows = taps(axes_[0], piece.depth) * taps(axes_[1], piece.height);
    for (std::int64_t i = 0; i < piece.count; ++i) {
      const std::int64_t count = rows * taps(axes_[2], piece.first + i);
      to[i] = from[i] / static_cast<T>(std::max<std::int64_t>(1, count));
    }
  }

 private:
  std::int64_t taps(const WindowAxis& axis, std::int64_t output) const {
    // A window that ceil_mode lets run past the padding counts up to the padding's end.
    if (includes_padding_) {
      return axis.taps_between(output, -axis.pad_begin, axis.input + axis.pad_end).count();
    }
    return axis.taps_of_output(output).count();
  }

  const WindowAxes& axes_;
  bool includes_padding_;
};

template <class T>
void average_pool(const PoolGeometry& g, bool includes_padding, const T* x, T* y) {
  const AverageDivisor divisor(g.axes, includes_padding);
  g.for_each_plane([&](std::int64_t plane) {
    const T* const from = x + plane * g.input_plane();
    T* const to = y + plane * g.output_plane();
    for_each_row_piece(g.axes, [&](const RowPiece& piece) {
      T* const row = to + piece.y;
      std::fill_n(row, piece.count, T(0));
      for_each_tap(g.axes, piece, [&](auto i, auto at, auto count, auto stride) {
        for (std::int64_t k = 0; k < count; ++k) row[i + k] += from[at + k * stride];
      });
      divisor.divide(piece, row, row);
    });
  });
}

template <class T>
void average_pool_grad(const PoolGeometry& g, bool includes_padding, const T* dy, T* dx) {
  const AverageDivisor divisor(g.axes, includes_padding);
  g.for_each_plane([&](std::int64_t plane) {
    const T* const from = dy + plane * g.output_plane();
    T* const to = dx + plane * g.input_plane();
    std::fill_n(to, g.input_plane(), T(0));
    for_each_row_piece(g.axes, [&](const RowPiece& piece) {
      std::array<T, RowPiece::kMost> row;
      divisor.divide(piece, from + piece.y, row.data());
      for_each_tap(g.axes, piece, [&](auto i, auto at, auto count, auto stride) {
        const T* const part = row.data() + i;
        for (std::int64_t k = 0; k < count; ++k) to[at + k * stride] += part[k];
      });
    });
  });
}

/// Asks make.operator()<T>(geometry) for the kernel when windows over `x` and the type fit.
template <class Types, class Make>
Kernel make_pool(Types types, const KernelRequest& request, const Shape& x, Make&& make) {
  Kernel kernel;
  if (!PoolGeometry::fits(x)) return kernel;
  const PoolGeometry geometry(request.node(), x);
  visit_dtype(types, request.dtype(),
              [&]<class T>() { kernel = make.template operator()<T>(geometry); });
  return kernel;
}

Kernel make_max_pool(KernelRequest& request) {
  const bool is_column_major = request.attributes().get_int("storage_order", 0) == 1;
  const bool has_indices = request.has_output(1);
  const bool has_values = request.has_output(0);
  if (!has_values) return {};
  return make_pool(PoolTypes{}, request, request.shape(), [&]<class T>(const PoolGeometry& g) {
    if (!has_indices) {
      return Kernel(
          [g](const KernelArgs& args) { max_pool(g, args.input<T>(0), args.output<T>()); });
    }
    return Kernel([g, is_column_major](const KernelArgs& args) {
      max_pool_with_indices(g, is_column_major, args.input<T>(0), args.output<T>(),
                            args.output<std::int64_t>(1));
    });
  });
}

Kernel make_max_pool_grad(KernelRequest& request) {
  return make_pool(FloatTypes{}, request, request.shape(), []<class T>(const PoolGeometry& g) {
    return Kernel([g](const KernelArgs& args) {
      max_pool_grad(g, args.input<T>(0), args.input<T>(1), args.output<T>());
    });
  });
}

Kernel make_average_pool(KernelRequest& request) {
  const bool pads = request.attributes().get_int("count_include_pad", 0) != 0;
  return make_pool(FloatTypes{}, request, request.shape(), [pads]<class T>(const PoolGeometry& g) {
    return Kernel([g, pads](const KernelArgs& args) {
      average_pool(g, pads, args.input<T>(0), args.output<T>());
    });
  });
}

Kernel make_average_pool_grad(KernelRequest& request) {
  const bool pads = request.attributes().get_int("count_include_pad", 0) != 0;
  return make_pool(FloatTypes{}, request, request.output().shape,
                   [pads]<class T>(const PoolGeometry& g) {
                     return Kernel([g, pads](const KernelArgs& args) {
                       average_pool_grad(g, pads, args.input<T>(0), args.output<T>());
                     });
                   });
}

/// y[plane] = reduce(elements, count) for every plane.
template <class Reduce>
Kernel make_global_pool(const KernelRequest& request, Reduce reduce) {
  const std::int64_t planes = request.output().shape.size();
  const std::int64_t count = request.shape().size(2, request.shape().rank());
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [planes, count, reduce](const KernelArgs& args) {
      parallel_for(planes, 16384 / std::max<std::int64_t>(1, count) + 1,
                   [&](auto first, auto last) {
                     for (std::int64_t plane = first; plane < last; ++plane) {
                       args.output<T>()[plane] = reduce(args.input<T>(0) + plane * count, count);
                     }
                   });
    };
  });
  return kernel;
}

Kernel make_global_average_pool(KernelRequest& request) {
  return make_global_pool(request, []<class T>(const T* x, std::int64_t count) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
    return static_cast<T>(sum / static_cast<double>(count));
  });
}

Kernel make_global_max_pool(KernelRequest& request) {
  return make_global_pool(request, []<class T>(const T* x, std::int64_t count) {
    T best = kLowest<T>;
    bool has_nan = false;
#pragma omp simd reduction(max : best) reduction(| : has_nan)
    for (std::int64_t i = 0; i < count; ++i) {
      best = x[i] > best ? x[i] : best;
      has_nan = has_nan | (x[i] != x[i]);
    }
    return has_nan ? std::numeric_limits<T>::quiet_NaN() : best;
  });
}

}  // namespace

void register_pool_cpu(KernelRegistry& registry) {
  registry.add({.op = "MaxPool", .name = "plain", .make = make_max_pool});
  registry.add({.op = "MaxPoolGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_max_pool_grad});
  registry.add({.op = "AveragePool", .name = "plain", .make = make_average_pool});
  registry.add({.op = "AveragePoolGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_average_pool_grad});
  registry.add({.op = "GlobalAveragePool", .name = "plain", .make = make_global_average_pool});
  registry.add({.op = "GlobalMaxPool", .name = "plain", .make = make_global_max_pool});
}

}  // namespace graft
