#pragma once

#include <cstdint>

#include "core/ops/kernels/matmul.h"
#include "core/ops/kernels/multiply.h"

namespace graft {

/// What a product of f32 is added to, one that is no batch: C where it lies, if it is one row or
/// has a row for each, and else what the output is filled with first.
class ProductStart {
 public:
  ProductStart(const KernelRequest& request, const MatMulProblem& p);

  /// Zeros without C. Writes the output where C must be scaled or spread.
  Addend of(const KernelArgs& args) const;

 private:
  bool has_c_;
  std::int64_t step_;
  Kernel fill_{};
};

}  // namespace graft
