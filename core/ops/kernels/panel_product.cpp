// Products of f32 by panels: blocks of both operands, copied so that tiles of sums read them in
// order.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/base/shape.h"
#include "core/ops/kernels/multiply.h"
#include "core/ops/kernels/prefetch.h"
#include "core/ops/kernels/product.h"
#include "core/ops/kernels/register_tile.h"
#include "core/ops/kernels/transpose.h"

namespace graft {
namespace {

#if defined(__x86_64__) && !defined(__AVX__)
constexpr std::int64_t kTileRows = 2;  // the 16 registers hold 4 numbers each
#else
constexpr std::int64_t kTileRows = 6;
#endif
constexpr std::int64_t kTileColumns = kMostTileVectors * kTileLanes;

// Panels of so many terms of each sum; those of kRows rows of a' stay in the second cache, those of
// kColumns columns of b' share the first with one of a'.
constexpr std::int64_t kTerms = 256;
constexpr std::int64_t kRows = 192;
constexpr std::int64_t kColumns = 64;
constexpr std::int64_t kLine = kCacheLineBytes / sizeof(float);
static_assert(kColumns % kTileColumns == 0 && kRows % kTileRows == 0);

/// From one panel of a' to the next: a line more than a panel, since a multiple of large powers of
/// two would bring their lines into a few sets of the first cache.
constexpr std::int64_t kLeftStep = kTerms * kTileRows + kLine;
constexpr std::int64_t kRightPanels = kColumns / kTileColumns;

/// From one panel of b' to the next.
std::int64_t right_step(const ProductSpec& p) {
  return std::min(kTerms, p.k) * kTileColumns;
}

struct Range {
  std::int64_t first;
  std::int64_t count;

  std::int64_t last() const { return first + count; }
};

/// Calls body(range) for ranges of `step` in `all`, the last of what is left.
template <class Body>
void for_each_range(const Range& all, std::int64_t step, Body&& body) {
  for (std::int64_t first = all.first; first < all.last(); first += step) {
    body(Range{first, std::min(step, all.last() - first)});
  }
}

/// One panel of a' whose rows lie apart. Squares of them turn round in registers; what a square has
/// beyond the rows of a panel, the next term overwrites.
void pack_rows(float alpha, const float* from, std::int64_t step, std::int64_t rows,
               std::int64_t terms, float* panel) {
  constexpr int kSide = std::min(8, kRegisterLanes);
  std::int64_t k = 0;
  if constexpr (kTileRows <= kSide) {
    static_assert(kSide - kTileRows <= kLeftStep - kTerms * kTileRows);
    for (; k + kSide <= terms; k += kSide) {
      Lanes<kSide> square[kSide] = {};
      unroll<int{kTileRows}>([&]<int r>() {
        if (r < rows) square[r] = alpha * load<kSide>(from + r * step + k);
      });
      transpose(square);
      unroll<kSide>([&]<int i>() { store(panel + (k + i) * kTileRows, square[i]); });
    }
  }
  for (; k < terms; ++k) {
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      panel[k * kTileRows + r] = r < rows ? alpha * from[r * step + k] : 0.0F;
    }
  }
}

/// Panels of alpha a': kTileRows numbers a term, zeros for rows past the last.
void pack_left(const ProductSpec& p, float alpha, const float* a, const Range& rows,
               const Range& terms, float* panels) {
  if (!p.transposes_a) {
    for_each_range(rows, kTileRows, [&](const Range& part) {
      pack_rows(alpha, a + part.first * p.lda + terms.first, p.lda, part.count, terms.count,
                panels);
      panels += kLeftStep;
    });
    return;
  }
  constexpr std::int64_t kAhead = 4;
  const std::int64_t whole = rows.count / kTileRows * kTileRows;
  for (std::int64_t k = 0; k < terms.count; ++k) {
    const float* const from = a + (terms.first + k) * p.lda + rows.first;
    prefetch_run(from + kAhead * p.lda, rows.count);
    float* to = panels + k * kTileRows;
    for (std::int64_t row = 0; row < whole; row += kTileRows, to += kLeftStep) {
      unroll<int{kTileRows}>([&]<int r>() { to[r] = alpha * from[row + r]; });
    }
    for (std::int64_t row = whole; row < rows.count; ++row) to[row - whole] = alpha * from[row];
    if (whole < rows.count) std::fill(to + rows.count - whole, to + kTileRows, 0.0F);
  }
}

/// One panel of b' whose columns lie together: squares of them turn round in registers.
void pack_turned(const float* from, std::int64_t step, std::int64_t columns, std::int64_t terms,
                 float* panel) {
  constexpr int kSide = kRegisterLanes;
  const std::int64_t whole_columns = columns / kSide * kSide;
  const std::int64_t whole_terms = terms / kSide * kSide;
  for (std::int64_t column = 0; column < whole_columns; column += kSide) {
    for (std::int64_t k = 0; k < whole_terms; k += kSide) {
      Lanes<kSide> square[kSide];
      unroll<kSide>([&]<int i>() { square[i] = load<kSide>(from + (column + i) * step + k); });
      transpose(square);
      unroll<kSide>([&]<int i>() { store(panel + (k + i) * kTileColumns + column, square[i]); });
    }
  }
  for (std::int64_t k = 0; k < terms; ++k) {
    float* const to = panel + k * kTileColumns;
    for (std::int64_t column = k < whole_terms ? whole_columns : 0; column < columns; ++column) {
      to[column] = from[column * step + k];
    }
    std::fill(to + columns, to + kTileColumns, 0.0F);
  }
}

/// Panels of b': kTileColumns numbers a term, zeros for columns past the last.
void pack_right(const ProductSpec& p, const float* b, const Range& columns, const Range& terms,
                float* panels) {
  if (p.transposes_b) {
    for_each_range(columns, kTileColumns, [&](const Range& part) {
      pack_turned(b + part.first * p.ldb + terms.first, p.ldb, part.count, terms.count, panels);
      panels += right_step(p);
    });
    return;
  }
  const std::int64_t step = right_step(p);
  const std::int64_t whole = columns.count / kTileColumns * kTileColumns;
  for (std::int64_t k = 0; k < terms.count; ++k) {
    const float* const from = b + (terms.first + k) * p.ldb + columns.first;
    float* to = panels + k * kTileColumns;
    for (std::int64_t line = 0; line < kColumns; line += kLine) prefetch(from + kColumns + line);
    for (std::int64_t column = 0; column < whole; column += kTileColumns, to += step) {
      std::memcpy(to, from + column, sizeof(float) * kTileColumns);
    }
    if (whole == columns.count) continue;
    std::fill(std::copy(from + whole, from + columns.count, to), to + kTileColumns, 0.0F);
  }
}

/// The same of rows that lie anywhere, one piece of a run after the other.
void pack_scattered(const ProductSpec& p, const ScatteredRows& b, const Range& columns,
                    const Range& terms, float* panels) {
  const std::int64_t* const places = b.places + terms.first;
  for_each_range(columns, kTileColumns, [&](const Range& panel) {
    std::int64_t count = 0;
    for (std::int64_t at = panel.first; at < panel.last(); at += count) {
      count = std::min(b.run - at % b.run, panel.last() - at);
      const float* const from = b.data + at / b.run * b.run_step + at % b.run;
      float* const to = panels + at - panel.first;
      for (std::int64_t k = 0; k < terms.count; ++k) {
        if (count == kTileColumns) {
          std::memcpy(to + k * kTileColumns, from + places[k], sizeof(float) * kTileColumns);
        } else {
          std::copy_n(from + places[k], count, to + k * kTileColumns);
        }
      }
    }
    for (std::int64_t k = 0; panel.count < kTileColumns && k < terms.count; ++k) {
      std::fill(panels + k * kTileColumns + panel.count, panels + (k + 1) * kTileColumns, 0.0F);
    }
    panels += right_step(p);
  });
}

/// b: as a matrix, or in the panels of all of b', or in rows that lie anywhere.
struct Right {
  const float* data = nullptr;
  const float* packed = nullptr;
  const ScatteredRows* rows = nullptr;
};

/// One tile of c, of so many rows and `columns`. Within another function, its sums would share the
/// registers with what is kept there.
template <int rows, int vectors>
[[gnu::noinline]] void multiply_tile(const float* left, const float* right, std::int64_t terms,
                                     const Addend& addend, std::int64_t columns, float* c,
                                     std::int64_t ldc) {
  RegisterTile<rows, vectors> tile;
  for (std::int64_t k = 0; k < terms; ++k, left += kTileRows, right += kTileColumns) {
    tile.add(right, [&](int r) { return left[r]; });
  }
  constexpr std::int64_t kWidth = vectors * kTileLanes;
  const auto row_of_c = [&](int r) { return c + r * ldc; };
  if (addend.data != nullptr) {
    const auto row_of_addend = [&](int r) { return addend.data + r * addend.step; };
    tile.write_sum(columns, row_of_addend, row_of_c, std::identity{});
  } else if (columns < kWidth) {
    float numbers[rows][kWidth];
    tile.template write<false>([&](int r) { return numbers[r]; });
    for (int r = 0; r < rows; ++r) std::copy_n(numbers[r], columns, row_of_c(r));
  } else {
    tile.template write<false>(row_of_c);
  }
}

/// Panels times panels. c, addend: the first element of `rows` times `columns`.
void multiply_panels(const ProductSpec& p, const float* left, const float* right,
                     std::int64_t terms, std::int64_t rows, std::int64_t columns,
                     const Addend& addend, float* c) {
  for_each_range({0, columns}, kTileColumns, [&](const Range& part) {
    const float* const panel = right + part.first / kTileColumns * right_step(p);
    with_count<kMostTileVectors>((part.count + kTileLanes - 1) / kTileLanes, [&]<int vectors>() {
      for_each_range({0, rows}, kTileRows, [&](const Range& tile) {
        with_count<int{kTileRows}>(tile.count, [&]<int count>() {
          multiply_tile<count, vectors>(left + tile.first / kTileRows * kLeftStep, panel, terms,
                                        addend.from(tile.first, part.first), part.count,
                                        c + tile.first * p.ldc + part.first, p.ldc);
        });
      });
    });
  });
}

std::int64_t ranges_of(std::int64_t count, std::int64_t step) {
  return count / step + (count % step == 0 ? 0 : 1);
}

/// Numbers in the panels of all of b'.
std::int64_t packed_size(const ProductSpec& p) {
  return checked_multiply(checked_multiply(ranges_of(p.k, kTerms), ranges_of(p.n, kColumns)),
                          kRightPanels * right_step(p));
}

/// Where those of a block of b' begin among them.
std::int64_t packed_place(const ProductSpec& p, const Range& columns, const Range& terms) {
  return (terms.first / kTerms * ranges_of(p.n, kColumns) + columns.first / kColumns) *
         kRightPanels * right_step(p);
}

/// A part of c, on the calling thread. `columns` begin at a multiple of kColumns.
void multiply_part(const ProductSpec& p, float alpha, const float* a, const Right& b,
                   const Range& rows, const Range& columns, const Addend& addend, float* c) {
  alignas(64) float left[kRows / kTileRows * kLeftStep];
  alignas(64) float right[kTerms * kColumns];
  // Of about one size, since b' is copied for each.
  const std::int64_t blocks = ranges_of(rows.count, kRows);
  const std::int64_t block = ranges_of(ranges_of(rows.count, blocks), kTileRows) * kTileRows;
  for_each_range({0, p.k}, kTerms, [&](const Range& terms) {
    const Addend before = terms.first > 0 ? Addend{c, p.ldc} : addend;
    for_each_range(rows, block, [&](const Range& part) {
      pack_left(p, alpha, a, part, terms, left);
      for_each_range(columns, kColumns, [&](const Range& strip) {
        const float* panels = right;
        if (b.packed != nullptr) {
          panels = b.packed + packed_place(p, strip, terms);
        } else if (b.rows != nullptr) {
          pack_scattered(p, *b.rows, strip, terms, right);
        } else {
          pack_right(p, b.data, strip, terms, right);
        }
        multiply_panels(p, left, panels, terms.count, part.count, strip.count,
                        before.from(part.first, strip.first), c + part.first * p.ldc + strip.first);
      });
    });
  });
}

void fill_with(const Addend& addend, const ProductSpec& p, float* c) {
  for (std::int64_t i = 0; i < p.m; ++i, c += p.ldc) {
    const float* const from = addend.from(i, 0).data;
    if (from == nullptr) {
      std::fill_n(c, p.n, 0.0F);
    } else if (from != c) {
      std::copy_n(from, p.n, c);
    }
  }
}

/// What a product starts from that may be added to c.
Addend start_of(const ProductSpec& p, const float* c) {
  return p.adds ? Addend{c, p.ldc} : Addend{};
}

/// Threads share the rows or the columns, whichever are more.
void multiply_all(const ProductSpec& p, float alpha, const float* a, const Right& b,
                  const Addend& addend, float* c) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    fill_with(addend, p, c);
    return;
  }
  constexpr std::int64_t kProductsWorthAThread = 1 << 16;
  const bool by_rows = p.m >= p.n;
  const std::int64_t unit = by_rows ? kTileRows : kColumns;
  const Range all{0, by_rows ? p.m : p.n};
  const std::int64_t products_a_unit = unit * (by_rows ? p.n : p.m) * p.k;
  const std::int64_t grain = kProductsWorthAThread / std::max<std::int64_t>(1, products_a_unit) + 1;
  parallel_for(ranges_of(all.count, unit), grain, [&](std::int64_t first, std::int64_t last) {
    const Range part{first * unit, std::min(last * unit, all.count) - first * unit};
    multiply_part(p, alpha, a, b, by_rows ? part : Range{0, p.m}, by_rows ? Range{0, p.n} : part,
                  addend, c);
  });
}

}  // namespace

bool panels_suit() {
  return kHasHalfRegisters;
}

template <>
void multiply(const ProductSpec& p, float alpha, const float* a, const float* b, float* c) {
  multiply_all(p, alpha, a, {.data = b}, start_of(p, c), c);
}

void multiply_onto(const ProductSpec& p, float alpha, const float* a, const float* b,
                   const Addend& addend, float* c) {
  multiply_all(p, alpha, a, {.data = b}, addend, c);
}

void multiply_packed_onto(const ProductSpec& p, const float* a, const void* packed,
                          const Addend& addend, float* c) {
  multiply_all(p, 1.0F, a, {.packed = static_cast<const float*>(packed)}, addend, c);
}

void multiply_scattered(const ProductSpec& p, const float* a, const ScatteredRows& b, float* c) {
  multiply_all(p, 1.0F, a, {.rows = &b}, {}, c);
}

template <>
Product<float> plain_product(const ProductSpec& p) {
  Product<float> product;
  if (!p.packs_b || p.k == 0 || p.n == 0) {
    product.run = [p](const float* a, const void* b, float* c, void*) {
      multiply(p, 1.0F, a, static_cast<const float*>(b), c);
    };
    return product;
  }
  product.packed_bytes = bytes_of(DType::f32, packed_size(p));
  product.pack = [p](const float* b, void* packed) {
    auto* const panels = static_cast<float*>(packed);
    parallel_for(ranges_of(p.n, kColumns), 1, [&](std::int64_t first, std::int64_t last) {
      const Range part{first * kColumns, std::min(last * kColumns, p.n) - first * kColumns};
      for_each_range(part, kColumns, [&](const Range& columns) {
        for_each_range({0, p.k}, kTerms, [&](const Range& terms) {
          pack_right(p, b, columns, terms, panels + packed_place(p, columns, terms));
        });
      });
    });
  };
  product.run = [p](const float* a, const void* packed, float* c, void*) {
    multiply_packed_onto(p, a, packed, start_of(p, c), c);
  };
  return product;
}

}  // namespace graft
