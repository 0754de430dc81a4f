#include "core/ops/kernels/bf16_product.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/rng.h"

namespace graft {
namespace {

#if defined(GRAFT_HAS_BF16_PRODUCTS)

/// A product of so many tiles, summed over `chunks` chunks, twice: with other rows of b.
struct Case {
  std::int64_t row_tiles;
  std::int64_t column_tiles;
  std::int64_t chunks;
  std::int64_t last;
};

constexpr Case kCases[] = {{1, 1, 1, 32}, {2, 2, 3, 32}, {3, 1, 2, 6}, {1, 3, 2, 18}, {4, 5, 1, 2}};

std::vector<BFloat16> numbers(std::int64_t count, std::uint64_t seed) {
  const Philox random(seed);
  std::vector<BFloat16> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.emplace_back(2 * random.uniform(static_cast<std::uint64_t>(i)) - 1);
  }
  return all;
}

/// Both sides with all that is summed. a: [time][chunk][row][32]; b: [row of pairs][column], of
/// which the second time begins two rows of pairs behind the first.
class Operands {
 public:
  explicit Operands(const Case& c)
      : rows(c.row_tiles * kBf16Side),
        columns(c.column_tiles * kBf16Side),
        inner(c.chunks * kBf16Inner),
        a(numbers(2 * rows * inner, 1)),
        b(numbers((inner + 4) * columns, 2)),
        offsets{0, 2 * columns} {
    for (std::int64_t time = 0; time < 2; ++time) {
      for (std::int64_t k = inner - kBf16Inner + c.last; k < inner; ++k) {
        for (std::int64_t row = 0; row < rows; ++row) a[place(time, row, k)] = BFloat16();
      }
    }
  }

  std::size_t place(std::int64_t time, std::int64_t row, std::int64_t k) const {
    return static_cast<std::size_t>(time * rows * inner + k / kBf16Inner * rows * kBf16Inner +
                                    row * kBf16Inner + k % kBf16Inner);
  }
  Bf16Rows left() const { return {a.data(), kBf16Inner, rows * kBf16Inner}; }
  Bf16Pairs right() const { return {reinterpret_cast<const Bf16Pair*>(b.data()), columns}; }
  Bf16Terms terms(const Case& c) const {
    return {.chunks = c.chunks,
            .times = 2,
            .a_step = rows * inner,
            .b_offsets = offsets,
            .last = c.last};
  }
  double sum(std::int64_t row, std::int64_t column) const {
    double sum = 0;
    for (std::int64_t time = 0; time < 2; ++time) {
      for (std::int64_t k = 0; k < inner; ++k) {
        const std::int64_t pair = (time * 2 + k / 2) * columns + column;
        sum +=
            static_cast<double>(static_cast<float>(a[place(time, row, k)])) *
            static_cast<double>(static_cast<float>(b[static_cast<std::size_t>(2 * pair + k % 2)]));
      }
    }
    return sum;
  }

  std::int64_t rows;
  std::int64_t columns;
  std::int64_t inner;
  std::vector<BFloat16> a;
  std::vector<BFloat16> b;
  std::int64_t offsets[2];
};

/// Within what sums of f32 of up to 192 terms below 1 differ by.
template <class Multiply>
void expect_right(const Case& c, float before, Multiply&& multiply) {
  constexpr double kNear = 1e-5;
  const Operands operands(c);
  const std::int64_t step = operands.columns + 1;
  std::vector<float> sums(static_cast<std::size_t>(operands.rows * step), 3.0F);
  multiply(operands, sums.data(), step);
  for (std::int64_t row = 0; row < operands.rows; ++row) {
    for (std::int64_t column = 0; column < operands.columns; ++column) {
      EXPECT_NEAR(sums[static_cast<std::size_t>(row * step + column)],
                  before + operands.sum(row, column), kNear);
    }
    EXPECT_EQ(sums[static_cast<std::size_t>(row * step + operands.columns)], 3.0F);
  }
}

TEST(Bf16Product, SumsWhatTheTermsSay) {
  if (!multiplies_bf16_faster()) GTEST_SKIP() << "this processor does not multiply bf16";
  const AmxTiles tiles;
  for (const Case& c : kCases) {
    expect_right(c, 0.0F, [&](const Operands& o, float* sums, std::int64_t step) {
      bf16_product<false>(o.left(), o.right(), c.row_tiles, c.column_tiles, o.terms(c), sums, step);
    });
    expect_right(c, 3.0F, [&](const Operands& o, float* sums, std::int64_t step) {
      bf16_product<true>(o.left(), o.right(), c.row_tiles, c.column_tiles, o.terms(c), sums, step);
    });
  }
}

TEST(Bf16Product, RegistersSumTheSame) {
  if (!multiplies_bf16_faster()) GTEST_SKIP() << "this processor does not multiply bf16";
  for (const Case& c : kCases) {
    expect_right(c, 3.0F, [&](const Operands& o, float* sums, std::int64_t step) {
      detail::multiply_by_registers<true>(o.left(), o.right(), c.row_tiles, c.column_tiles,
                                          o.terms(c), sums, step);
    });
  }
}

#endif

}  // namespace
}  // namespace graft
