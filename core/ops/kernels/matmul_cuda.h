#pragma once

#include <cuda_runtime_api.h>

#include "core/ops/kernels/matmul.h"

namespace graft {

/// A MatMulProblem as its kernel needs it: y = alpha * a' b' + beta * c for each entry of a batch.
struct DeviceProduct {
  static constexpr int kMostAxes = 6;

  DeviceProduct() = default;
  /// Of a product whose `fits` is true.
  explicit DeviceProduct(const MatMulProblem& problem);
  static bool fits(const MatMulProblem& problem);

  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transposes_a = false;
  bool transposes_b = false;
  double alpha = 1.0;
  double beta = 0.0;
  /// What c advances by from row to row and from column to column; 0 where it repeats.
  std::int64_t c_row = 0;
  std::int64_t c_column = 0;
  int axes = 0;
  std::int64_t batch = 1;
  std::int64_t dims[kMostAxes] = {};
  std::int64_t a_steps[kMostAxes] = {};
  std::int64_t b_steps[kMostAxes] = {};

  /// T: float, double or BFloat16, which is summed in f32. `c` is null without beta, and may be y.
  /// `rate`, where there is one, is a number on the device by whose negative alpha is multiplied.
  template <class T>
  void run(const T* a, const T* b, const T* c, T* y, const T* rate, cudaStream_t stream) const;
};

/// scales[0] = -rate * alpha, scales[1] = beta, on the device.
void write_scales(const float* rate, float alpha, float beta, float* scales, cudaStream_t stream);

}  // namespace graft
