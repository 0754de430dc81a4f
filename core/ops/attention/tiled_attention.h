#pragma once

#include "core/ops/attention/attention_geometry.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/pieces.h"
#include "core/ops/sample.h"

namespace graft {

/// f32 by tiles of 64 queries and some keys: the general case.
Kernel make_attention_by_tiles(KernelRequest& request);
Kernel make_attention_grad_by_tiles(KernelRequest& request);

/// bf16 by tiles (bf16_product.h), with sums, statistics and a bias of f32.
Kernel make_bf16_attention(KernelRequest& request);
Kernel make_bf16_attention_grad(KernelRequest& request);

std::vector<Sample> tiled_attention_samples();
std::vector<Sample> tiled_attention_grad_samples();

/// Where the bias stands among the inputs.
inline constexpr int kAttentionBias = 3;
inline constexpr int kAttentionGradBias = 6;

}  // namespace graft
