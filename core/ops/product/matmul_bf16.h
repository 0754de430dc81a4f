#pragma once

#include "core/ops/registry.h"

namespace graft {

/// Of MatMul and Gemm, a^T b of bf16 over many rows. Empty where oneDNN is as fast.
Kernel make_bf16_row_product(KernelRequest& request);

}  // namespace graft
