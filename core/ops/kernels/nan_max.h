#pragma once

#include <Eigen/Core>

namespace graft {

/// Element-wise maximum and minimum of Eigen arrays in which NaN wins.
template <class A, class B>
auto nan_max(const A& a, const B& b) {
  using T = typename A::Scalar;
  return a.binaryExpr(b, Eigen::internal::scalar_max_op<T, T, Eigen::PropagateNaN>());
}
template <class A, class B>
auto nan_min(const A& a, const B& b) {
  using T = typename A::Scalar;
  return a.binaryExpr(b, Eigen::internal::scalar_min_op<T, T, Eigen::PropagateNaN>());
}

}  // namespace graft
