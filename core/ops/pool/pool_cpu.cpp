#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/pool/pool_channels_last.h"
#include "core/ops/pool/pool_geometry.h"
#include "core/ops/pool/pool_tiles.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using PoolTypes = TypeList<float, double, std::int8_t, std::uint8_t>;

template <class T>
constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                           : std::numeric_limits<T>::lowest();

template <class T>
void max_pool(const PoolGeometry& g, const T* x, T* y) {
  g.for_each_plane([&](std::int64_t plane) {
    const T* const from = x + plane * g.input_plane();
    T* const to = y + plane * g.output_plane();
    if (are_tiles(g.axes)) return max_pool_tiles(g.axes, from, to);
    for_each_row_piece(g.axes, [&](const RowPiece& piece) {
      T* const row = to + piece.y;
      std::fill_n(row, piece.count, kLowest<T>);
      for_each_tap(g, piece, [&](auto i, auto at, auto count, auto stride) {
        for (std::int64_t k = 0; k < count; ++k) {
          row[i + k] = greater_of(row[i + k], from[at + k * stride]);
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

  void find(const PoolGeometry& g, const RowPiece& piece, const T* x) {
    std::fill_n(best.begin(), piece.count, kLowest<T>);
    std::fill_n(index.begin(), piece.count, -1);
    for_each_tap(g, piece, [&](auto i, auto at, auto count, auto stride) {
      T* const b = best.data() + i;
      std::int32_t* const found = index.data() + i;
      for (std::int64_t k = 0; k < count; ++k) {
        const T value = x[at + k * stride];
        const auto here = static_cast<std::int32_t>(at + k * stride);
        const std::int32_t known = found[k] < 0 ? here : found[k];
        found[k] = if_greater(value, b[k], here, known);
        b[k] = greater_of(b[k], value);
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
      row.find(g, piece, x + start);
      const std::int64_t at = plane * g.output_plane() + piece.y;
      std::copy_n(row.best.begin(), piece.count, y + at);
      for (std::int64_t i = 0; i < piece.count; ++i) {
        const std::int64_t index = row.index[static_cast<std::size_t>(i)];
        const bool is_turned = is_column_major && index >= 0;
        indices[at + i] = start + (is_turned ? column_major(g.axes, index) : index);
      }
    });
  });
}

template <class T>
void max_pool_grad(const PoolGeometry& g, const T* x, const T* dy, T* dx) {
  g.for_each_plane([&](std::int64_t plane) {
    const T* const from = dy + plane * g.output_plane();
    const T* const values = x + plane * g.input_plane();
    T* const to = dx + plane * g.input_plane();
    if (are_tiles(g.axes)) return max_pool_grad_tiles(g.axes, values, from, to);
    std::fill_n(to, g.input_plane(), T(0));
    for_each_row_piece(g.axes, [&](const RowPiece& piece) {
      RowArgmax<T> row;
      row.find(g, piece, values);
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
      : axes_(counted_axes(axes, includes_padding)) {
    full_ = {axes_[2].outputs_of_tap(0).first, axes_[2].outputs_of_tap(axes_[2].kernel - 1).last};
  }

  /// to[i] = from[i] / count.
  template <class T>
  void divide(const RowPiece& piece, const T* from, T* to) const {
    const double rows = static_cast<double>(axes_[0].taps_of_output(piece.depth).count()) *
                        static_cast<double>(axes_[1].taps_of_output(piece.height).count());
    const std::int64_t first = std::clamp<std::int64_t>(full_.first - piece.first, 0, piece.count);
    const std::int64_t last = std::clamp(full_.last - piece.first, first, piece.count);
    divide_border(piece, rows, 0, first, from, to);
    const T whole = static_cast<T>(std::max(1.0, rows * static_cast<double>(axes_[2].kernel)));
    for (std::int64_t i = first; i < last; ++i) to[i] = from[i] / whole;
    divide_border(piece, rows, last, piece.count, from, to);
  }

 private:
  template <class T>
  void divide_border(const RowPiece& piece, double rows, std::int64_t first, std::int64_t last,
                     const T* from, T* to) const {
    for (std::int64_t i = first; i < last; ++i) {
      const auto columns = static_cast<double>(axes_[2].taps_of_output(piece.first + i).count());
      to[i] = from[i] / static_cast<T>(std::max(1.0, rows * columns));
    }
  }

  WindowAxes axes_;
  /// The columns whose windows have all their taps.
  Span full_{};
};

template <class T>
void average_pool(const PoolGeometry& g, const AverageDivisor& divisor, const T* x, T* y) {
  g.for_each_plane([&](std::int64_t plane) {
    const T* const from = x + plane * g.input_plane();
    T* const to = y + plane * g.output_plane();
    if (are_tiles(g.axes)) return average_pool_tiles(g.axes, from, to);
    for_each_row_piece(g.axes, [&](const RowPiece& piece) {
      T* const row = to + piece.y;
      std::fill_n(row, piece.count, T(0));
      for_each_tap(g, piece, [&](auto i, auto at, auto count, auto stride) {
        for (std::int64_t k = 0; k < count; ++k) row[i + k] += from[at + k * stride];
      });
      divisor.divide(piece, row, row);
    });
  });
}

template <class T>
void average_pool_grad(const PoolGeometry& g, const AverageDivisor& divisor, const T* dy, T* dx) {
  g.for_each_plane([&](std::int64_t plane) {
    const T* const from = dy + plane * g.output_plane();
    T* const to = dx + plane * g.input_plane();
    if (are_tiles(g.axes)) return average_pool_grad_tiles(g.axes, from, to);
    std::fill_n(to, g.input_plane(), T(0));
    for_each_row_piece(g.axes, [&](const RowPiece& piece) {
      std::array<T, RowPiece::kMost> row;
      divisor.divide(piece, from + piece.y, row.data());
      for_each_tap(g, piece, [&](auto i, auto at, auto count, auto stride) {
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
  visit_kernel_dtype(types, request.dtype(),
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
    return Kernel([g, divisor = AverageDivisor(g.axes, pads)](const KernelArgs& args) {
      average_pool(g, divisor, args.input<T>(0), args.output<T>());
    });
  });
}

Kernel make_average_pool_grad(KernelRequest& request) {
  const bool pads = request.attributes().get_int("count_include_pad", 0) != 0;
  return make_pool(
      FloatTypes{}, request, request.output().shape, [pads]<class T>(const PoolGeometry& g) {
        return Kernel([g, divisor = AverageDivisor(g.axes, pads)](const KernelArgs& args) {
          average_pool_grad(g, divisor, args.input<T>(0), args.output<T>());
        });
      });
}

/// y[plane] = reduce(elements, count) for every plane.
template <class Reduce>
Kernel make_global_pool(const KernelRequest& request, Reduce reduce) {
  const std::int64_t planes = request.output().shape.size();
  const std::int64_t count = request.shape().size(2, request.shape().rank());
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
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
  register_channels_last_pools(registry);
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
