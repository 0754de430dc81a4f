#pragma once

#include <cstdint>
#include <type_traits>

#include "core/ops/lanes_internal.h"

namespace graft {

// Products of small matrices that lie in the cache.

/// A matrix whose elements are read one by one; steps in elements. A row step that the compiler
/// knows, std::integral_constant, saves registers.
template <class RowStep>
struct TileOperand {
  const float* data;
  RowStep row_step;
  std::int64_t column_step;
};

namespace detail {

inline constexpr int kTileLanes = 16;
using TileVector = Lanes<kTileLanes>;

/// Keeps `rows` x `vectors` vectors of c in registers.
template <bool adds, int rows, int vectors, class RowStep>
void product_block(const TileOperand<RowStep>& a, const float* b, std::int64_t ldb,
                   std::int64_t inner, float* c, std::int64_t ldc) {
  TileVector sums[rows][vectors] = {};
  for (std::int64_t k = 0; k < inner; ++k) {
    const float* const from = a.data + k * a.column_step;
    TileVector row[vectors];
    unroll<vectors>([&]<int v>() { row[v] = load<kTileLanes>(b + k * ldb + v * kTileLanes); });
    unroll<rows>([&]<int r>() {
      const float factor = from[r * a.row_step];
      unroll<vectors>([&]<int v>() { sums[r][v] += factor * row[v]; });
    });
  }
  unroll<rows>([&]<int r>() {
    unroll<vectors>([&]<int v>() {
      float* const to = c + r * ldc + v * kTileLanes;
      store(to, adds ? load<kTileLanes>(to) + sums[r][v] : sums[r][v]);
    });
  });
}

/// `count` rows, `rows` at a time, then those that are left together.
template <bool adds, int rows, int vectors, class RowStep>
void product_rows(TileOperand<RowStep> a, const float* b, std::int64_t ldb, std::int64_t count,
                  std::int64_t inner, float* c, std::int64_t ldc) {
  for (; count >= rows; count -= rows) {
    product_block<adds, rows, vectors>(a, b, ldb, inner, c, ldc);
    a.data += rows * a.row_step;
    c += rows * ldc;
  }
  if constexpr (rows > 1) {
    if (count > 0) product_rows<adds, rows - 1, vectors>(a, b, ldb, count, inner, c, ldc);
  }
}

}  // namespace detail

/// c = a b, with `adds` c += a b. a: [rows, inner]; b: [inner, columns], rows `ldb` apart; c:
/// [rows, columns], rows `ldc` apart. Works on whole vectors of 16 columns: b and c have room for
/// them.
template <bool adds, class RowStep>
void tile_product(const TileOperand<RowStep>& a, const float* b, std::int64_t ldb,
                  std::int64_t rows, std::int64_t inner, std::int64_t columns, float* c,
                  std::int64_t ldc) {
  // At most 24 of the 32 vector registers are sums; rows whose step is not known each take a
  // register for their address.
  constexpr bool kKnown = !std::is_integral_v<RowStep>;
  constexpr int kLanes = detail::kTileLanes;
  for (; columns > 3 * kLanes; columns -= 4 * kLanes, b += 4 * kLanes, c += 4 * kLanes) {
    detail::product_rows<adds, 6, 4>(a, b, ldb, rows, inner, c, ldc);
  }
  if (columns > 2 * kLanes) {
    detail::product_rows<adds, 8, 3>(a, b, ldb, rows, inner, c, ldc);
  } else if (columns > kLanes) {
    detail::product_rows<adds, kKnown ? 12 : 8, 2>(a, b, ldb, rows, inner, c, ldc);
  } else if (columns > 0) {
    detail::product_rows<adds, kKnown ? 16 : 8, 1>(a, b, ldb, rows, inner, c, ldc);
  }
}

}  // namespace graft
