#pragma once

#include <cuda_runtime_api.h>

#include "core/ops/kernels/matmul.h"

namespace graft {

/// A MatMulProblem as its kernel needs it: y = alpha * a' b' + beta * c for each entry of a batch.
struct DeviceProduct {
  static constexpr int kMostAxes = 6;

  /// Of an f32 or f64 product whose `fits` is true.
  explicit DeviceProduct(const MatMulProblem& problem);
  static bool fits(const MatMulProblem& problem);

  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  bool transposes_a;
  bool transposes_b;
  double alpha;
  double beta;
  /// What c advances by from row to row and from column to column; 0 where it repeats.
  std::int64_t c_row = 0;
  std::int64_t c_column = 0;
  int axes = 0;
  std::int64_t batch = 1;
  std::int64_t dims[kMostAxes] = {};
  std::int64_t a_steps[kMostAxes] = {};
  std::int64_t b_steps[kMostAxes] = {};

  /// T: float or double. `c` is null without beta, and may be y. `rate`, where there is one, is a
  /// number on the device by whose negative alpha is multiplied.
  template <class T>
  void run(const T* a, const T* b, const T* c, T* y, const T* rate, cudaStream_t stream) const;
};

}  // namespace graft
