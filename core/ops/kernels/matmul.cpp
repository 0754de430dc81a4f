#include "core/ops/kernels/matmul.h"

#include "core/base/machine.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/product.h"
#include "core/ops/kernels/strided.h"

namespace graft {

MatMulProblem::MatMulProblem(const KernelRequest& request, const MatMulOperands& operands)
    : transposes_a(request.attributes().get_int("transA", 0) != 0),
      transposes_b(request.attributes().get_int("transB", 0) != 0),
      alpha(request.attributes().get_float("alpha", 1.0F)),
      beta(operands.c >= 0 && request.has_input(operands.c)
               ? request.attributes().get_float("beta", 1.0F)
               : 0.0F) {
  std::vector<std::int64_t> a = request.shape(operands.a).dims();
  std::vector<std::int64_t> b = request.shape(operands.b).dims();
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  const std::int64_t a_rows = a[a.size() - 2];
  m = transposes_a ? a.back() : a_rows;
  k = transposes_a ? a_rows : a.back();
  n = transposes_b ? b[b.size() - 2] : b.back();
  is_empty = request.output().shape.size() == 0;
  if (is_empty) return;

  const std::int64_t a_size = m * k;
  const std::int64_t b_size = k * n;
  const Shape a_batch(std::vector<std::int64_t>(a.begin(), a.end() - 2));
  const Shape b_batch(std::vector<std::int64_t>(b.begin(), b.end() - 2));
  const Shape y_batch =
      a_batch == b_batch ? a_batch : broadcast(a_batch, b_batch, request.node().label());
  if (b_batch.size() == 1 && !transposes_a) {
    // One b for the whole batch: one tall product.
    m *= y_batch.size();
    return;
  }
  const std::vector<std::int64_t> a_strides = broadcast_strides(a_batch, y_batch);
  const std::vector<std::int64_t> b_strides = broadcast_strides(b_batch, y_batch);
  for (int axis = 0; axis < y_batch.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    append_batch_axis(y_batch[axis], a_strides[at] * a_size, b_strides[at] * b_size);
  }
}

void MatMulProblem::append_batch_axis(std::int64_t dim, std::int64_t a_step, std::int64_t b_step) {
  if (dim == 1) return;
  if (!batch.empty() && a_steps.back() == a_step * dim && b_steps.back() == b_step * dim) {
    batch.back() *= dim;
    a_steps.back() = a_step;
    b_steps.back() = b_step;
    return;
  }
  batch.push_back(dim);
  a_steps.push_back(a_step);
  b_steps.push_back(b_step);
}

ProductSpec product_of_rows(const MatMulProblem& p, std::int64_t rows) {
  return {.m = rows,
          .n = p.n,
          .k = p.k,
          .lda = p.transposes_a ? p.m : p.k,
          .ldb = p.transposes_b ? p.k : p.n,
          .ldc = p.n,
          .transposes_a = p.transposes_a,
          .transposes_b = p.transposes_b};
}

std::int64_t MatMulProblem::batch_size() const {
  std::int64_t size = 1;
  for (const std::int64_t dim : batch) size *= dim;
  return size;
}

template <class T>
Kernel fill_with_c(const KernelRequest& request, float beta) {
  const Shape& y = request.output().shape;
  const StridedCopy copy(y.dims(), y.strides(), broadcast_strides(request.shape(2), y));
  return [copy, beta, size = y.size()](const KernelArgs& args) {
    if (args.inputs[2] != args.outputs[0]) copy.run(args.output<T>(), args.input<T>(2));
    if (beta == 1.0F) return;
    parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
      T* const out = args.output<T>();
      for (std::int64_t i = first; i < last; ++i) out[i] *= static_cast<T>(beta);
    });
  };
}

template Kernel fill_with_c<float>(const KernelRequest& request, float beta);
template Kernel fill_with_c<double>(const KernelRequest& request, float beta);
template Kernel fill_with_c<std::uint32_t>(const KernelRequest& request, float beta);
template Kernel fill_with_c<std::uint64_t>(const KernelRequest& request, float beta);

}  // namespace graft
