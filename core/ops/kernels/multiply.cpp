#include "core/ops/kernels/multiply.h"

#include <Eigen/Core>
#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/parallel.h"

namespace graft {
namespace {

/// On the calling thread.
void multiply_here(const ProductSpec& p, double alpha, const double* a_data, const double* b_data,
                   double* c_data) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Steps = Eigen::OuterStride<>;
  Eigen::Map<Matrix, 0, Steps> c(c_data, p.m, p.n, Steps(p.ldc));
  if (!p.adds) c.setZero();
  if (p.k == 0) return;
  const auto add = [&](const auto& a, const auto& b) {
    if (alpha != 1.0) {
      c.noalias() += alpha * (a * b);
    } else {
      c.noalias() += a * b;
    }
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

/// c += a b for a whose rows, and b whose columns, are contiguous.
template <class T>
void add_dots(const ProductSpec& p, const T* a, const T* b, T* c) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      T sum{0};
      for (std::int64_t k = 0; k < p.k; ++k) sum += a[i * p.lda + k] * b[j * p.ldb + k];
      c[i * p.ldc + j] += sum;
    }
  }
}

/// c += a b, a block of b after the other times each row of a. Blocks have one width, also at the
/// edge, and their sums stay in registers.
template <class T>
void add_blocks(const ProductSpec& p, const T* a, const T* b, T* c) {
  using Numbers [[gnu::vector_size(64)]] = T;
  constexpr std::int64_t kVectors = 4;
  constexpr std::int64_t kColumns = kVectors * sizeof(Numbers) / sizeof(T);
  constexpr std::int64_t kDepth = 64;
  const std::int64_t row_step = p.transposes_b ? 1 : p.ldb;
  const std::int64_t column_step = p.transposes_b ? p.ldb : 1;
  T row[kColumns]{};
  Numbers block[kDepth][kVectors];
  for (std::int64_t column = 0; column < p.n; column += kColumns) {
    const std::int64_t width = std::min(kColumns, p.n - column);
    for (std::int64_t first = 0; first < p.k; first += kDepth) {
      const std::int64_t depth = std::min(kDepth, p.k - first);
      for (std::int64_t k = 0; k < depth; ++k) {
        const T* const from = b + (first + k) * row_step + column * column_step;
        for (std::int64_t j = 0; j < width; ++j) row[j] = from[j * column_step];
        std::memcpy(block[k], row, sizeof(row));
      }
      for (std::int64_t i = 0; i < p.m; ++i) {
        Numbers sums[kVectors]{};
        for (std::int64_t k = 0; k < depth; ++k) {
          const std::int64_t at = first + k;
          const T factor = p.transposes_a ? a[at * p.lda + i] : a[i * p.lda + at];
          for (std::int64_t v = 0; v < kVectors; ++v) sums[v] += factor * block[k][v];
        }
        std::memcpy(row, sums, sizeof(row));
        T* const to = c + i * p.ldc + column;
        for (std::int64_t j = 0; j < width; ++j) to[j] += row[j];
      }
    }
  }
}

/// On the calling thread, of integers: their sums may be taken in any order, and Eigen's products
/// of them take 10 s to compile.
template <std::unsigned_integral T>
void multiply_here(const ProductSpec& p, T /*alpha*/, const T* a, const T* b, T* c) {
  for (std::int64_t i = 0; i < p.m && !p.adds; ++i) std::fill_n(c + i * p.ldc, p.n, T{0});
  const bool has_contiguous_columns = p.transposes_b || (p.n == 1 && p.ldb == 1);
  has_contiguous_columns && !p.transposes_a ? add_dots(p, a, b, c) : add_blocks(p, a, b, c);
}

}  // namespace

template <class T>
void multiply(const ProductSpec& p, T alpha, const T* a, const T* b, T* c) {
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

template void multiply(const ProductSpec&, double, const double*, const double*, double*);
template void multiply(const ProductSpec&, std::uint32_t, const std::uint32_t*,
                       const std::uint32_t*, std::uint32_t*);
template void multiply(const ProductSpec&, std::uint64_t, const std::uint64_t*,
                       const std::uint64_t*, std::uint64_t*);

}  // namespace graft
