#include "core/ops/kernels/eigen_multiply.h"

#include <Eigen/Core>
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <type_traits>

#include "core/base/parallel.h"

namespace graft {
namespace {

/// On the calling thread.
template <class T>
void multiply_here(const ProductSpec& p, T alpha, const T* a_data, const T* b_data, T* c_data) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Steps = Eigen::OuterStride<>;
  Eigen::Map<Matrix, 0, Steps> c(c_data, p.m, p.n, Steps(p.ldc));
  if (!p.adds) c.setZero();
  if (p.k == 0) return;
  const auto add = [&](const auto& a, const auto& b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (alpha != T{1}) {
        c.noalias() += alpha * (a * b);
        return;
      }
    }
    c.noalias() += a * b;
  };
  const Eigen::Map<const Matrix, 0, Steps> a(a_data, p.transposes_a ? p.k : p.m,
                                             p.transposes_a ? p.m : p.k, Steps(p.lda));
  const Eigen::Map<const Matrix, 0, Steps> b(b_data, p.transposes_b ? p.n : p.k,
                                             p.transposes_b ? p.k : p.n, Steps(p.ldb));
  if (p.transposes_a && p.transposes_b) {
    add(a.transpose(), b.transpose());
  } else if (p.transposes_a) {
    add(a.transpose(), b);
  } else if (p.transposes_b) {
    add(a, b.transpose());
  } else {
    add(a, b);
  }
}

}  // namespace

template <class T>
void eigen_multiply(const ProductSpec& p, T alpha, const T* a, const T* b, T* c) {
  assert(std::is_floating_point_v<T> || alpha == T{1});
  constexpr std::int64_t kProductsWorthAThread = 1 << 16;
  constexpr std::int64_t kLeastLines = 16;  // below which the tiles of Eigen stay half empty
  const bool by_rows = p.m >= p.n;
  const std::int64_t products_a_line = std::max<std::int64_t>(1, (by_rows ? p.n : p.m) * p.k);
  const std::int64_t grain = std::max(kLeastLines, kProductsWorthAThread / products_a_line);
  parallel_for(by_rows ? p.m : p.n, grain, [&](std::int64_t first, std::int64_t last) {
    ProductSpec part = p;
    (by_rows ? part.m : part.n) = last - first;
    const std::int64_t a_step = !by_rows ? 0 : p.transposes_a ? 1 : p.lda;
    const std::int64_t b_step = by_rows ? 0 : p.transposes_b ? p.ldb : 1;
    multiply_here(part, alpha, a + first * a_step, b + first * b_step,
                  c + first * (by_rows ? p.ldc : 1));
  });
}

template void eigen_multiply(const ProductSpec&, float, const float*, const float*, float*);
template void eigen_multiply(const ProductSpec&, double, const double*, const double*, double*);
template void eigen_multiply(const ProductSpec&, std::uint32_t, const std::uint32_t*,
                             const std::uint32_t*, std::uint32_t*);
template void eigen_multiply(const ProductSpec&, std::uint64_t, const std::uint64_t*,
                             const std::uint64_t*, std::uint64_t*);

}  // namespace graft
