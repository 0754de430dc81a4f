#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace graft {

enum class ReductionKind {
  sum,
  mean,
  product,
  largest,
  smallest,
  l1,
  l2,
  sum_square,
  log_sum,
  log_sum_exp
};

/// Axes as their elements lie in memory, outermost first.
struct DeviceAxes {
  static constexpr int kMost = 8;
  int count = 0;
  std::int64_t dims[kMost] = {};
  std::int64_t strides[kMost] = {};
  std::int64_t size = 1;
};

/// A reduction over some axes of f32, f64 or bf16 elements; sums run in f64, in an order that
/// follows from the shape alone.
struct DeviceReduction {
  DeviceAxes kept;
  DeviceAxes reduced;
  ReductionKind reduction = ReductionKind::sum;
  DType dtype = DType::f32;
  /// Pieces of the reduced length that threads take side by side; joined in a second pass.
  std::int64_t splits = 1;
  /// A block for each output, else a thread for each output and piece.
  bool by_blocks = false;

  /// Chooses how: needs the axes.
  void choose();
  std::size_t workspace_bytes() const;
  void run(const void* x, void* y, void* workspace, cudaStream_t stream) const;
};

}  // namespace graft
