#pragma once

#include "core/ops/kernels/product.h"

namespace graft {

/// c = alpha * a * b, or that added to c, on all threads, which share the rows or the columns of c,
/// whichever are more. Of float by panels, of double by Eigen, and of unsigned integers, where
/// alpha is 1.
template <class T>
void multiply(const ProductSpec& p, T alpha, const T* a, const T* b, T* c);
/// Blocks of both operands are copied into panels on the stack, as wide as a tile of sums in
/// registers. Blocks are the same on every machine and for any number of threads, so that an
/// element's bits depend on its row of a and its column of b alone.
template <>
void multiply(const ProductSpec& p, float alpha, const float* a, const float* b, float* c);

/// Rows of numbers, `step` apart: 0 where one row stands for all. Without `data`: zeros.
struct Addend {
  const float* data = nullptr;
  std::int64_t step = 0;

  Addend from(std::int64_t row, std::int64_t column) const {
    return data == nullptr ? *this : Addend{data + row * step + column, step};
  }
};

/// c = alpha * a * b + addend, with the bits of a copy of `addend` in c that the product is added
/// to. p.adds is not looked at; `addend` may be c itself.
void multiply_onto(const ProductSpec& p, float alpha, const float* a, const float* b,
                   const Addend& addend, float* c);
/// The same by what plain_product's `pack` made of b, with alpha 1.
void multiply_packed_onto(const ProductSpec& p, const float* a, const void* packed,
                          const Addend& addend, float* c);

/// A matrix whose rows begin anywhere, and may share numbers. Each lies in runs of `run` numbers,
/// `run_step` apart.
struct ScatteredRows {
  const float* data;
  const std::int64_t* places;  ///< of each row, from `data`
  std::int64_t run;
  std::int64_t run_step;
};

/// c = a' b of float, with rows of b that lie anywhere. p.ldb, p.transposes_b and p.adds are not
/// looked at.
void multiply_scattered(const ProductSpec& p, const float* a, const ScatteredRows& b, float* c);

}  // namespace graft
