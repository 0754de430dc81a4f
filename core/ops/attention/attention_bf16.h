#pragma once

// Attention of bf16 whose products are made by tiles (bf16_product.h). Scores and their gradients
// are f32 in between, [key][query] as in attention_tile.h; probabilities and gradients of scores
// are rounded to bf16 for the products that they enter.
#include "core/ops/attention/attention_passes.h"
#include "core/ops/kernels/amx.h"
#include "core/ops/kernels/bf16_panels.h"
#include "core/ops/kernels/kernel_dtypes.h"

#if defined(GRAFT_HAS_BF16_PRODUCTS)
#include <immintrin.h>

namespace graft {

/// 2^x to within 3e-6 of it: most results are rounded to bf16.
inline Lanes16 exp2_for_bf16(const Lanes16& x) {
  constexpr int kBehindThePoint = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
  constexpr __mmask16 kAllLanes = 0xffff;  // GCC 12 warns of the form without a mask
  const Lanes16 r = _mm512_reduce_ps(x, kBehindThePoint);
  Lanes16 p = r * 0.0135341659F + 0.0520114638F;
  p = p * r + 0.241442755F;
  p = p * r + 0.693003833F;
  p = p * r + 1.00000262F;
  return _mm512_maskz_scalef_ps(kAllLanes, p, x);
}

/// `low`, then `high`, rounded to bf16.
inline __m512i round_to_bf16(const Lanes16& low, const Lanes16& high) {
  __m512i both;
  asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(low), "v"(high));
  return both;
}

/// Where a product left scores without scale and bias: adds the bias, and hides what lies between
/// the last key and the last row. Returns a factor that is left to whoever reads the scores, > 0.
inline float finish_scores(const AttentionGeometry& n, const float* bias, const TileRows& rows,
                           std::int64_t keys, std::int64_t score_rows, float* scores) {
  float factor = n.scale * kLog2E;
  if (bias != nullptr || !(factor > 0.0F)) {
    for (std::int64_t i = 0; i < keys * kTileQueries; i += 16) {
      store(scores + i, load<16>(scores + i) * factor);
    }
    if (bias != nullptr) add_bias(n.bias, bias, rows, keys, scores);
    factor = 1.0F;
  }
  std::fill_n(scores + keys * kTileQueries, (score_rows - keys) * kTileQueries,
              -std::numeric_limits<float>::infinity());
  return factor;
}

/// Tiles that hold so many rows or columns of a result.
inline std::int64_t bf16_tiles(std::int64_t count) {
  return (count + kBf16Side - 1) / kBf16Side;
}

/// Whether the kernel takes these operands: q, k, v of bf16, a bias of f32.
inline bool fits_bf16(const KernelRequest& request) {
  return is_kernel_dtype<BFloat16>(request.dtype()) && multiplies_bf16_faster();
}

}  // namespace graft

#endif
