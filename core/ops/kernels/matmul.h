#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/kernel.h"

namespace graft {

struct ProductSpec;

/// Which inputs a product reads; c: none when negative.
struct MatMulOperands {
  int a = 0;
  int b = 1;
  int c = 2;
};

/// y = alpha * a' b' (+ beta * c) for each entry of a batch; a' is a or its transpose: what MatMul,
/// Gemm and BatchedMatMul have in common. a': [m,k], b': [k,n], y: [m,n], all row-major.
struct MatMulProblem {
  /// Batch axes, outermost first; steps in elements, 0 where the operand repeats.
  std::vector<std::int64_t> batch{};
  std::vector<std::int64_t> a_steps{};
  std::vector<std::int64_t> b_steps{};
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  bool transposes_a = false;
  bool transposes_b = false;
  /// y has no elements.
  bool is_empty = false;
  float alpha = 1.0F;
  /// 0 without c.
  float beta = 0.0F;

  explicit MatMulProblem(const KernelRequest& request, const MatMulOperands& operands = {});

  /// One of the operands is a vector, and the other's matrix is read once.
  bool is_matvec() const { return !is_empty && k > 0 && batch.empty() && (m == 1 || n == 1); }
  /// Number of products.
  std::int64_t batch_size() const;

 private:
  void append_batch_axis(std::int64_t dim, std::int64_t a_step, std::int64_t b_step);
};

/// The product of `rows` rows of a' by b', of one entry of a batch, into rows that lie `p.n` apart.
ProductSpec product_of_rows(const MatMulProblem& p, std::int64_t rows);

/// Vector times matrix, of f32 and f64; empty for other products.
Kernel make_matvec(KernelRequest& request);

/// One product a b or a^T b, the usual gradients of activations and weights, that dnnl_sgemm
/// computes faster than oneDNN's primitive.
bool suits_sgemm(const MatMulProblem& p);
/// c = alpha a' b + beta c, for those.
void run_sgemm(const MatMulProblem& p, float alpha, const float* a, const float* b, float beta,
               float* c);

/// Writes beta * c, broadcast, to y.
template <class T>
Kernel fill_with_c(const KernelRequest& request, float beta);

}  // namespace graft
