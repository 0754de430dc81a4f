#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/ops/kernels/product.h"

namespace graft {

inline std::vector<float> any_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = uniform(random);
  return numbers;
}

/// Operands whose rows lie a few numbers farther apart than they are long.
struct Operands {
  explicit Operands(const ProductSpec& spec)
      : a(any_numbers((spec.transposes_a ? spec.k : spec.m) * spec.lda, 1)),
        b(any_numbers((spec.transposes_b ? spec.n : spec.k) * spec.ldb, 2)),
        c(any_numbers(spec.m * spec.ldc, 3)) {}

  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> c;
};

/// Rows that lie a few numbers farther apart than they are long.
inline ProductSpec spec_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .lda = k + 3, .ldb = n + 1, .ldc = n + 5};
}

/// Either operand as it is and transposed, writing and adding.
inline std::vector<ProductSpec> forms_of(const ProductSpec& spec) {
  std::vector<ProductSpec> forms;
  for (const bool transposes_a : {false, true}) {
    for (const bool transposes_b : {false, true}) {
      ProductSpec form = spec;
      form.transposes_a = transposes_a;
      form.transposes_b = transposes_b;
      form.adds = transposes_a != transposes_b;
      form.lda = (transposes_a ? spec.m : spec.k) + 3;
      form.ldb = (transposes_b ? spec.k : spec.n) + 1;
      forms.push_back(form);
    }
  }
  return forms;
}

inline std::string describe(const ProductSpec& p) {
  return std::to_string(p.m) + " x " + std::to_string(p.n) + " x " + std::to_string(p.k) +
         (p.transposes_a ? " a^T" : "") + (p.transposes_b ? " b^T" : "") + (p.adds ? " adds" : "");
}

/// Numbers within c, and those between its rows, are what they should be.
inline void expect_product(const ProductSpec& p, float alpha, const Operands& before,
                           const std::vector<float>& c) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.ldc; ++j) {
      const auto at = static_cast<std::size_t>(i * p.ldc + j);
      if (j >= p.n) {
        ASSERT_EQ(c[at], before.c[at]) << "between rows, at " << i << ", " << j;
        continue;
      }
      double sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        const auto a = static_cast<std::size_t>(p.transposes_a ? k * p.lda + i : i * p.lda + k);
        const auto b = static_cast<std::size_t>(p.transposes_b ? j * p.ldb + k : k * p.ldb + j);
        sum += double{before.a[a]} * double{before.b[b]};
      }
      sum = double{alpha} * sum + (p.adds ? double{before.c[at]} : 0.0);
      ASSERT_NEAR(c[at], sum, 2e-6 * std::sqrt(static_cast<double>(p.k)) + 1e-6)
          << "at " << i << ", " << j;
    }
  }
}

}  // namespace graft
