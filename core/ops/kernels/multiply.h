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

}  // namespace graft
