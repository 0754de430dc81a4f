#pragma once

#include <cstdint>
#include <type_traits>

#include "core/ops/kernels/register_tile.h"

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

/// Columns of `vectors` vectors, tiles of at most `most` rows.
template <bool adds, int most, int vectors, class RowStep>
void product_rows(const TileOperand<RowStep>& a, const float* b, std::int64_t ldb,
                  std::int64_t count, std::int64_t inner, float* c, std::int64_t ldc) {
  for_each_row_tile<most>(count, [&]<int rows>(std::int64_t first) {
    RegisterTile<rows, vectors> tile;
    const float* from = a.data + first * a.row_step;
    const float* row = b;
    for (std::int64_t k = 0; k < inner; ++k, from += a.column_step, row += ldb) {
      tile.add(row, [&](int r) { return from[r * a.row_step]; });
    }
    float* const to = c + first * ldc;
    tile.template write<adds>([&](int r) { return to + r * ldc; });
  });
}

}  // namespace detail

/// c = a b, with `adds` c += a b. a: [rows, inner]; b: [inner, columns], rows `ldb` apart; c:
/// [rows, columns], rows `ldc` apart. Works on whole vectors of 16 columns: b and c have room for
/// them.
template <bool adds, class RowStep>
void tile_product(const TileOperand<RowStep>& a, const float* b, std::int64_t ldb,
                  std::int64_t rows, std::int64_t inner, std::int64_t columns, float* c,
                  std::int64_t ldc) {
  if constexpr (!kHasWideRegisters) {
    for (; columns > 0; columns -= kTileLanes, b += kTileLanes, c += kTileLanes) {
      detail::product_rows<adds, 6, 1>(a, b, ldb, rows, inner, c, ldc);
    }
    return;
  }
  // At most 24 of the 32 vector registers are sums; rows whose step is not known each take a
  // register for their address.
  constexpr bool kKnown = !std::is_integral_v<RowStep>;
  for (; columns > 3 * kTileLanes; columns -= 4 * kTileLanes) {
    detail::product_rows<adds, 6, 4>(a, b, ldb, rows, inner, c, ldc);
    b += 4 * kTileLanes;
    c += 4 * kTileLanes;
  }
  if (columns > 2 * kTileLanes) {
    detail::product_rows<adds, 8, 3>(a, b, ldb, rows, inner, c, ldc);
  } else if (columns > kTileLanes) {
    detail::product_rows<adds, kKnown ? 12 : 8, 2>(a, b, ldb, rows, inner, c, ldc);
  } else if (columns > 0) {
    detail::product_rows<adds, kKnown ? 16 : 8, 1>(a, b, ldb, rows, inner, c, ldc);
  }
}

}  // namespace graft
