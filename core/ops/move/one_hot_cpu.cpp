#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/machine.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

int axis_of(const KernelRequest& request, int rank) {
  return normalize_axis(request.attributes().get_int("axis", -1), rank, request.node().label());
}

/// Indices outside [-depth, depth) are nowhere on.
template <class Index>
bool is_on(Index index, std::int64_t depth) {
  if constexpr (std::is_floating_point_v<Index>) {
    return index >= -static_cast<Index>(depth) && index < static_cast<Index>(depth);
  } else if constexpr (std::is_unsigned_v<Index>) {
    return static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(depth);
  } else {
    return index >= -depth && index < depth;
  }
}

/// Where index `i` of those at `indices` is on, or -1.
using PlaceOf = std::int64_t (*)(const void* indices, std::int64_t i, std::int64_t depth);

template <class Index>
std::int64_t place_of(const void* indices, std::int64_t i, std::int64_t depth) {
  const Index index = static_cast<const Index*>(indices)[i];
  if (!is_on(index, depth)) return -1;
  const auto whole = static_cast<std::int64_t>(index);
  return whole < 0 ? whole + depth : whole;
}

/// indices: [outer, inner]; y: [outer, depth, inner].
template <class T>
Kernel one_hot_kernel(const KernelRequest& request, PlaceOf find) {
  const Shape& y_shape = request.output().shape;
  const int axis = axis_of(request, y_shape.rank());
  const std::int64_t depth = y_shape[axis];
  const std::int64_t inner = y_shape.size(axis + 1, y_shape.rank());
  return [depth, inner, find, count = request.shape().size(),
          size = y_shape.size()](const KernelArgs& args) {
    const T off = args.input<T>(2)[0];
    const T on = args.input<T>(2)[1];
    fill_elements(args.output<T>(), size, off);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = find(args.inputs[0], i, depth);
      if (place < 0) continue;
      args.output<T>()[(i / inner * depth + place) * inner + i % inner] = on;
    }
  };
}

Kernel make_one_hot(KernelRequest& request) {
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  PlaceOf place = nullptr;
  visit_kernel_dtype(NumericTypes{}, request.dtype(),
                     [&]<class Index>() { place = place_of<Index>; });
  if (place == nullptr) return {};
  Kernel kernel;
  visit_width(request.dtype(2), [&]<class T>() { kernel = one_hot_kernel<T>(request, place); });
  return kernel;
}

/// Strict order of "comes before": NaN counts as the largest, equal values go by their place.
template <class T>
class Before {
 public:
  Before(const T* values, std::int64_t step, bool largest)
      : values_(values), step_(step), largest_(largest) {}

  bool operator()(std::int64_t a, std::int64_t b) const {
    const T x = values_[a * step_];
    const T y = values_[b * step_];
    if (less(x, y)) return !largest_;
    if (less(y, x)) return largest_;
    return a < b;
  }

 private:
  static bool less(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(x)) return false;
      if (std::isnan(y)) return true;
    }
    return x < y;
  }
  const T* values_;
  std::int64_t step_;
  bool largest_;
};

/// x: [outer, dim, inner] to [outer, k, inner].
struct TopK {
  std::int64_t outer;
  std::int64_t dim;
  std::int64_t inner;
  std::int64_t k;
  bool largest;
  bool has_values;
  bool has_indices;
};

template <class T>
void select_row(const TopK& p, std::int64_t row, const KernelArgs& args, std::int64_t* order) {
  const std::int64_t outer = row / p.inner;
  const std::int64_t inner = row % p.inner;
  const T* const x = args.input<T>(0) + outer * p.dim * p.inner + inner;
  std::iota(order, order + p.dim, 0);
  std::partial_sort(order, order + p.k, order + p.dim, Before<T>(x, p.inner, p.largest));
  for (std::int64_t i = 0; i < p.k; ++i) {
    const std::int64_t at = (outer * p.k + i) * p.inner + inner;
    if (p.has_values) args.output<T>(0)[at] = x[order[i] * p.inner];
    if (p.has_indices) args.output<std::int64_t>(1)[at] = order[i];
  }
}

/// Also sorts when `sorted` is 0: the order is then open.
Kernel make_top_k(KernelRequest& request) {
  const Shape& x = request.shape();
  const Shape& y = request.has_output(0) ? request.output(0).shape : request.output(1).shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const int axis = axis_of(request, x.rank());
  const TopK p{x.size(0, axis),
               x[axis],
               x.size(axis + 1, x.rank()),
               y[axis],
               request.attributes().get_int("largest", 1) != 0,
               request.has_output(0),
               request.has_output(1)};
  const std::int64_t rows = p.outer * p.inner;
  const std::int64_t pieces = std::min<std::int64_t>(rows, thread_count());
  request.need_workspace(static_cast<std::size_t>(pieces * p.dim) * sizeof(std::int64_t));
  Kernel kernel;
  visit_kernel_dtype(NumericTypes{}, request.dtype(), [&]<class T>() {
    kernel = [p, rows, pieces](const KernelArgs& args) {
      // One piece of the rows and of the workspace a thread.
      parallel_for(pieces, kElementwiseGrain / (rows / pieces * p.dim + 1) + 1,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t piece = first; piece < last; ++piece) {
                       auto* const order =
                           static_cast<std::int64_t*>(args.workspace) + piece * p.dim;
                       for (std::int64_t row = rows * piece / pieces;
                            row < rows * (piece + 1) / pieces; ++row) {
                         select_row<T>(p, row, args, order);
                       }
                     }
                   });
    };
  });
  return kernel;
}

}  // namespace

void register_one_hot_cpu(KernelRegistry& registry) {
  registry.add({.op = "OneHot", .name = "plain", .make = make_one_hot});
  registry.add({.op = "TopK", .name = "plain", .make = make_top_k});
}

}  // namespace graft
