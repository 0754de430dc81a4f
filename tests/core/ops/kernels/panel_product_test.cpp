// Products of f32 by panels, around the edges of their blocks.
#include <gtest/gtest.h>

#include <vector>

#include "core/base/parallel.h"
#include "core/ops/kernels/multiply.h"
#include "core/ops/kernels/product.h"
#include "tests/core/ops/kernels/product_case.h"

namespace graft {
namespace {

const ProductSpec kSpecs[] = {spec_of(1, 1, 1),      spec_of(6, 16, 8),    spec_of(7, 17, 9),
                              spec_of(5, 63, 256),   spec_of(13, 64, 257), spec_of(12, 65, 31),
                              spec_of(193, 40, 300), spec_of(33, 130, 70), spec_of(3, 5, 520),
                              spec_of(200, 3, 64),   spec_of(4, 200, 0)};

TEST(PanelProduct, IsTheSumInF64) {
  for (const ProductSpec& spec : kSpecs) {
    for (const ProductSpec& p : forms_of(spec)) {
      SCOPED_TRACE(describe(p));
      for (const float alpha : {1.0F, -0.5F}) {
        const Operands before(p);
        std::vector<float> c = before.c;
        multiply(p, alpha, before.a.data(), before.b.data(), c.data());
        ASSERT_NO_FATAL_FAILURE(expect_product(p, alpha, before, c));
      }
    }
  }
}

TEST(PanelProduct, HasTheSameBitsForAnyThreadsAndPackedBefore) {
  const int threads = thread_count();
  for (const ProductSpec& spec : kSpecs) {
    for (ProductSpec p : forms_of(spec)) {
      SCOPED_TRACE(describe(p));
      const Operands before(p);
      set_thread_count(1);
      std::vector<float> expected = before.c;
      multiply(p, 1.0F, before.a.data(), before.b.data(), expected.data());
      for (const int count : {1, 2, 3}) {
        set_thread_count(count);
        std::vector<float> c = before.c;
        multiply(p, 1.0F, before.a.data(), before.b.data(), c.data());
        EXPECT_EQ(c, expected) << count << " threads";
        p.packs_b = true;
        const Product<float> product = plain_product<float>(p);
        std::vector<std::byte> packed(product.packed_bytes);
        if (product.pack) product.pack(before.b.data(), packed.data());
        const void* const b = product.pack ? static_cast<const void*>(packed.data())
                                           : static_cast<const void*>(before.b.data());
        c = before.c;
        product.run(before.a.data(), b, c.data(), nullptr);
        EXPECT_EQ(c, expected) << count << " threads, packed";
      }
    }
  }
  set_thread_count(threads);
}

/// Rows that a product is added to give what a copy of them in c gives, to the bit.
TEST(PanelProduct, BeginsWithRowsThatLieElsewhere) {
  for (const ProductSpec& spec : kSpecs) {
    for (ProductSpec p : forms_of(spec)) {
      const Operands before(p);
      const std::vector<float> rows = any_numbers(p.m * p.n, 4);
      for (const std::int64_t step : {std::int64_t{0}, p.n}) {
        SCOPED_TRACE(describe(p) + ", rows " + std::to_string(step) + " apart");
        std::vector<float> expected = before.c;
        for (std::int64_t i = 0; i < p.m; ++i) {
          std::copy_n(rows.begin() + i * step, p.n, expected.begin() + i * p.ldc);
        }
        std::vector<float> in_place = expected;
        p.adds = true;
        multiply(p, 0.5F, before.a.data(), before.b.data(), expected.data());
        p.adds = false;
        std::vector<float> c = before.c;
        multiply_onto(p, 0.5F, before.a.data(), before.b.data(), {rows.data(), step}, c.data());
        EXPECT_EQ(c, expected);
        multiply_onto(p, 0.5F, before.a.data(), before.b.data(), {in_place.data(), p.ldc},
                      in_place.data());
        EXPECT_EQ(in_place, expected) << "in place";
      }
    }
  }
}

TEST(PanelProduct, OfPackedColumnsBeginsWithRowsThatLieElsewhere) {
  for (ProductSpec p : kSpecs) {
    SCOPED_TRACE(describe(p));
    const Operands before(p);
    const std::vector<float> row = any_numbers(p.n, 4);
    std::vector<float> expected = before.c;
    multiply_onto(p, 1.0F, before.a.data(), before.b.data(), {row.data(), 0}, expected.data());
    p.packs_b = true;
    const Product<float> product = plain_product<float>(p);
    std::vector<std::byte> packed(product.packed_bytes);
    if (product.pack) product.pack(before.b.data(), packed.data());
    std::vector<float> c = before.c;
    multiply_packed_onto(p, before.a.data(), packed.data(), {row.data(), 0}, c.data());
    EXPECT_EQ(c, expected);
  }
}

/// A row of a large product has the bits that it has alone.
TEST(PanelProduct, HasTheSameBitsInAnyPlace) {
  const ProductSpec all = spec_of(50, 70, 300);
  const Operands before(all);
  std::vector<float> c = before.c;
  multiply(all, 1.0F, before.a.data(), before.b.data(), c.data());
  for (std::int64_t row = 0; row < all.m; row += 7) {
    ProductSpec one = all;
    one.m = 1;
    std::vector<float> alone(static_cast<std::size_t>(all.n));
    multiply(one, 1.0F, before.a.data() + row * all.lda, before.b.data(), alone.data());
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), c.begin() + row * all.ldc)) << row;
  }
}

/// Shapes of files may have one axis without elements and others of any length.
TEST(PanelProduct, OfNothingEndsAtOnce) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  for (const auto& [m, n] : {std::pair{std::int64_t{0}, kHuge}, {kHuge, std::int64_t{0}}}) {
    for (const bool packs_b : {false, true}) {
      ProductSpec p{.m = m, .n = n, .k = kHuge, .lda = kHuge, .ldb = n, .ldc = n};
      p.packs_b = packs_b;
      multiply<float>(p, 1.0F, nullptr, nullptr, nullptr);
      if (n == 0) plain_product<float>(p).run(nullptr, nullptr, nullptr, nullptr);
    }
  }
}

}  // namespace
}  // namespace graft
