#pragma once

#include "core/ops/kernels/product.h"

namespace graft {

/// c = alpha * a * b, or that added to c, on all threads, which share the rows or the columns of c,
/// whichever are more. Of float and double, by Eigen, and of unsigned integers, where alpha is 1.
template <class T>
void eigen_multiply(const ProductSpec& p, T alpha, const T* a, const T* b, T* c);

}  // namespace graft
