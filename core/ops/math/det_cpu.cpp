#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Elimination with row pivots; destroys the n x n matrix `a`. What is done to its rows is done to
/// the `n` columns of `right`, unless null, and the solution of a * z = right is left there if the
/// matrix is not singular.
double eliminate(double* a, std::int64_t n, double* right) {
  double det = 1.0;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      if (right != nullptr) std::swap_ranges(right + k * n, right + (k + 1) * n, right + pivot * n);
      det = -det;
    }
    const double head = a[k * n + k];
    det *= head;
    if (head == 0.0) return det;  // 0, or NaN that came before
    for (std::int64_t i = right == nullptr ? k + 1 : 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i * n + k] / head;
      for (std::int64_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      if (right == nullptr) continue;
      for (std::int64_t j = 0; j < n; ++j) right[i * n + j] -= factor * right[k * n + j];
    }
  }
  if (right == nullptr) return det;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) right[i * n + j] /= a[i * n + i];
  }
  return det;
}

template <class T>
void copy_matrix(const T* x, std::int64_t n, double* a) {
  std::transform(x, x + n * n, a, [](T v) { return static_cast<double>(v); });
}

/// The determinant of x without row `row` and column `column`; `a` has room for it.
template <class T>
double minor_of(const T* x, std::int64_t n, std::int64_t row, std::int64_t column, double* a) {
  double* to = a;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (i != row && j != column) *to++ = static_cast<double>(x[i * n + j]);
    }
  }
  return eliminate(a, n - 1, nullptr);
}

/// det * inverse transposed; of a singular matrix, where that is 0 / 0, each minor by itself.
template <class T>
void cofactors(const T* x, std::int64_t n, double* a, double* inverse, T* y) {
  copy_matrix(x, n, a);
  std::fill_n(inverse, n * n, 0.0);
  for (std::int64_t i = 0; i < n; ++i) inverse[i * n + i] = 1.0;
  const double det = eliminate(a, n, inverse);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const double sign = (i + j) % 2 == 0 ? 1.0 : -1.0;
      y[i * n + j] =
          static_cast<T>(det == 0.0 ? sign * minor_of(x, n, i, j, a) : det * inverse[j * n + i]);
    }
  }
}

struct Matrices {
  explicit Matrices(const Shape& shape)
      : n(shape[shape.rank() - 1]), count(shape.size(0, shape.rank() - 2)) {}

  /// For `copies` of all matrices in f64.
  std::size_t scratch_bytes(int copies) const {
    return bytes_of(DType::f64, checked_multiply(checked_multiply(count, n * n), copies));
  }
  template <class Body>
  void for_each(Body&& body) const {
    constexpr std::int64_t kOperationsWorthAThread = 4096;
    const std::int64_t grain = kOperationsWorthAThread / std::max<std::int64_t>(1, n * n * n) + 1;
    parallel_for(count, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) body(i);
    });
  }

  std::int64_t n;
  std::int64_t count;
};

Kernel make_det(KernelRequest& request) {
  const Matrices matrices(request.shape());
  if (matrices.count == 0) return [](const KernelArgs&) {};
  const std::int64_t size = matrices.n * matrices.n;
  request.need_workspace(matrices.scratch_bytes(1));
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      matrices.for_each([&](std::int64_t i) {
        double* const a = static_cast<double*>(args.workspace) + i * size;
        copy_matrix(args.input<T>(0) + i * size, matrices.n, a);
        args.output<T>()[i] = static_cast<T>(eliminate(a, matrices.n, nullptr));
      });
    };
  });
  return kernel;
}

Kernel make_cofactors(KernelRequest& request) {
  if (request.shape().size() == 0) return [](const KernelArgs&) {};
  const Matrices matrices(request.shape());
  const std::int64_t size = matrices.n * matrices.n;
  request.need_workspace(matrices.scratch_bytes(2));
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      matrices.for_each([&](std::int64_t i) {
        double* const a = static_cast<double*>(args.workspace) + i * 2 * size;
        cofactors(args.input<T>(0) + i * size, matrices.n, a, a + size,
                  args.output<T>() + i * size);
      });
    };
  });
  return kernel;
}

}  // namespace

void register_det_cpu(KernelRegistry& registry) {
  registry.add({.op = "Det", .name = "plain", .make = make_det});
  registry.add(
      {.op = "Cofactors", .domain = kInternalDomain, .name = "plain", .make = make_cofactors});
}

}  // namespace graft
