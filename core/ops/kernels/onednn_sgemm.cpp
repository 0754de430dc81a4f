#include <array>

#include "core/ops/kernels/matmul.h"
#include "core/ops/kernels/onednn.h"

namespace graft {

/// In the form of BLAS both operands are packed, where the primitive copies a transposed one by
/// itself: that takes 5 to 50 % less (2 cores, AVX-512) for large results or sums of many terms.
/// Few rows by a large matrix take 15 (64 rows) to 60 % less (16). Elsewhere it is at most as fast,
/// and its first call makes kernels for 35 ms.
bool suits_sgemm(const MatMulProblem& p) {
  if (p.transposes_b || !p.batch.empty() || p.is_empty || p.k == 0) return false;
  if (!fits_onednn(std::array{p.m, p.n, p.k})) return false;
  constexpr std::int64_t kLarge = std::int64_t{1} << 19;
  constexpr std::int64_t kManyTerms = 256;
  constexpr std::int64_t kFewRows = 64;
  if (p.transposes_a) return p.m * p.n >= kLarge || p.k > kManyTerms;
  return p.m <= kFewRows && p.k * p.n >= kLarge;
}

void run_sgemm(const MatMulProblem& p, float alpha, const float* a, const float* b, float beta,
               float* c) {
  onednn_sgemm(p.transposes_a, p.m, p.n, p.k, alpha, a, b, beta, c);
}

}  // namespace graft
