// Products of f32 by tiles of bf16, around the edges of their blocks and of what f32 holds.
#include "core/ops/kernels/split_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/kernels/amx.h"
#include "core/tensor/tensor.h"
#include "tests/core/ops/kernels/product_case.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)

namespace graft {
namespace {

class SplitProductTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!may_use_amx())
      GTEST_SKIP() << "the processor has no tiles, or the system does not lend them";
  }
};

Tensor bytes(std::size_t count) {
  return Tensor::zeros(DType::u8, {static_cast<std::int64_t>(count)});
}

std::vector<float> product_of(ProductSpec p, float alpha, const Operands& before,
                              const Addend& addend, bool packs_b = false) {
  p.packs_b = packs_b;
  const SplitProduct split(p);
  Tensor scratch = bytes(split.scratch_bytes());
  Tensor packed = bytes(packs_b ? split.packed_bytes() : 0);
  if (packs_b) split.pack(before.b.data(), packed.data());
  std::vector<float> c = before.c;
  const void* const b =
      packs_b ? static_cast<const void*>(packed.data()) : static_cast<const void*>(before.b.data());
  const Addend from = p.adds ? Addend{c.data(), p.ldc} : addend;
  split.run(alpha, before.a.data(), b, from, c.data(), scratch.data());
  return c;
}

const ProductSpec kSpecs[] = {spec_of(1, 1, 1),     spec_of(32, 32, 32),  spec_of(33, 31, 129),
                              spec_of(7, 300, 128), spec_of(300, 7, 131), spec_of(70, 65, 300),
                              spec_of(5, 40, 16),   spec_of(290, 40, 17), spec_of(40, 290, 270)};

TEST_F(SplitProductTest, IsTheSumInF64) {
  for (const ProductSpec& spec : kSpecs) {
    for (const ProductSpec& p : forms_of(spec)) {
      SCOPED_TRACE(describe(p));
      const Operands before(p);
      for (const float alpha : {1.0F, -0.5F}) {
        const std::vector<float> c = product_of(p, alpha, before, {});
        ASSERT_NO_FATAL_FAILURE(expect_product(p, alpha, before, c));
      }
    }
  }
}

TEST_F(SplitProductTest, HasTheSameBitsForAnyThreadsAndPackedBefore) {
  const int threads = thread_count();
  for (const ProductSpec& spec : kSpecs) {
    for (const ProductSpec& p : forms_of(spec)) {
      SCOPED_TRACE(describe(p));
      const Operands before(p);
      set_thread_count(1);
      const std::vector<float> expected = product_of(p, 1.0F, before, {});
      for (const int count : {1, 2, 3}) {
        set_thread_count(count);
        EXPECT_EQ(product_of(p, 1.0F, before, {}), expected) << count << " threads";
        EXPECT_EQ(product_of(p, 1.0F, before, {}, true), expected) << count << " threads, packed";
      }
    }
  }
  set_thread_count(threads);
}

TEST_F(SplitProductTest, BeginsWithRowsThatLieElsewhere) {
  for (ProductSpec p : kSpecs) {
    for (const std::int64_t step : {std::int64_t{0}, p.n}) {
      SCOPED_TRACE(describe(p) + ", rows " + std::to_string(step) + " apart");
      Operands before(p);
      const std::vector<float> rows = any_numbers(p.m * p.n, 4);
      const std::vector<float> c = product_of(p, 1.0F, before, {rows.data(), step});
      for (std::int64_t i = 0; i < p.m; ++i) {
        std::copy_n(rows.begin() + i * step, p.n, before.c.begin() + i * p.ldc);
      }
      p.adds = true;
      EXPECT_EQ(c, product_of(p, 1.0F, before, {}));
      p.adds = false;
    }
  }
}

/// Squares of errors beside the sum of the terms' magnitudes.
struct Errors {
  double of_parts = 0;
  double of_f32 = 0;
};

Errors errors_of(const ProductSpec& p, const Operands& operands) {
  const std::vector<float> c = product_of(p, 1.0F, operands, {});
  Errors errors;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      double magnitude = 0;
      float in_f32 = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        const float a = operands.a[static_cast<std::size_t>(i * p.lda + k)];
        const float b = operands.b[static_cast<std::size_t>(k * p.ldb + j)];
        sum += double{a} * double{b};
        magnitude += std::fabs(double{a} * double{b});
        in_f32 = std::fma(a, b, in_f32);
      }
      const auto squared = [&](float of) { return std::pow((double{of} - sum) / magnitude, 2); };
      errors.of_parts += squared(c[static_cast<std::size_t>(i * p.ldc + j)]);
      errors.of_f32 += squared(in_f32);
    }
  }
  return errors;
}

/// With all signs, and where everything adds up.
TEST_F(SplitProductTest, IsAtLeastAsNearAsSumsOfF32) {
  const ProductSpec p = spec_of(64, 64, 512);
  Operands operands(p);
  Errors errors = errors_of(p, operands);
  EXPECT_LT(errors.of_parts, errors.of_f32);
  for (float& number : operands.a) number = std::fabs(number);
  for (float& number : operands.b) number = std::fabs(number);
  errors = errors_of(p, operands);
  EXPECT_LT(errors.of_parts, errors.of_f32);
}

/// Numbers whose parts would be infinite, and what is so already.
TEST_F(SplitProductTest, KeepsTheMeaningOfInfinitiesAndNan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const ProductSpec& spec : {spec_of(40, 70, 150), spec_of(70, 40, 150)}) {
    for (const ProductSpec& p : forms_of(spec)) {
      for (const bool packs_b : {false, true}) {
        for (const float special : {kInfinity, -kInfinity, kMost, std::nanf("")}) {
          for (const bool is_left : {false, true}) {
            SCOPED_TRACE(describe(p) + (is_left ? " a: " : " b: ") + std::to_string(special));
            Operands operands(p);
            std::fill(operands.a.begin(), operands.a.end(), 0.5F);
            std::fill(operands.b.begin(), operands.b.end(), 0.25F);
            // Row or column 35, term 140.
            const bool is_by_term = is_left ? p.transposes_a : !p.transposes_b;
            const std::int64_t step = is_left ? p.lda : p.ldb;
            auto& numbers = is_left ? operands.a : operands.b;
            const std::int64_t at = is_by_term ? 140 * step + 35 : 35 * step + 140;
            numbers[static_cast<std::size_t>(at)] = special;
            const std::vector<float> c = product_of(p, 1.0F, operands, {}, packs_b);
            for (std::int64_t i = 0; i < p.m; ++i) {
              for (std::int64_t j = 0; j < p.n; ++j) {
                const auto place = static_cast<std::size_t>(i * p.ldc + j);
                const float before = p.adds ? operands.c[place] : 0.0F;
                const bool meets = (is_left ? i : j) == 35;
                const float expected =
                    meets ? special * (is_left ? 0.25F : 0.5F) : before + 150 * 0.125F;
                if (std::isnan(expected)) {
                  ASSERT_TRUE(std::isnan(c[place])) << i << ", " << j;
                } else {
                  ASSERT_FLOAT_EQ(c[place], expected) << i << ", " << j;
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST_F(SplitProductTest, IsNotForSmallProducts) {
  EXPECT_FALSE(suits_split(spec_of(1, 4096, 4096)));
  EXPECT_FALSE(suits_split(spec_of(32, 32, 32)));
  EXPECT_FALSE(suits_split(spec_of(1 << 20, 1 << 20, 1)));
  EXPECT_FALSE(suits_split(spec_of(1 << 20, 1 << 20, 33)));
}

}  // namespace
}  // namespace graft

#endif
