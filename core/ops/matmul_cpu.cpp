#include <Eigen/Core>

#include "core/ops/broadcast_internal.h"
#include "core/ops/elementwise_internal.h"
#include "core/ops/matmul_internal.h"
#include "core/ops/registry.h"
#include "core/ops/strided_internal.h"

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
      ArrayMap<T>(args.output<T>() + first, last - first) *= static_cast<T>(beta);
    });
  };
}

template Kernel fill_with_c<float>(const KernelRequest& request, float beta);
template Kernel fill_with_c<double>(const KernelRequest& request, float beta);

namespace {

template <class T>
using ConstMatrixMap =
    Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
template <class T>
using MatrixMap = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

template <class T>
void multiply_one(const MatMulProblem& p, const T* a_data, const T* b_data, T* y_data) {
  MatrixMap<T> y(y_data, p.m, p.n);
  if (p.beta == 0.0F) y.setZero();
  const auto add = [&](const auto& a, const auto& b) {
    if (p.alpha == 1.0F) {
      y.noalias() += a * b;
    } else {
      y.noalias() += static_cast<T>(p.alpha) * (a * b);
    }
  };
  const ConstMatrixMap<T> a(a_data, p.transposes_a ? p.k : p.m, p.transposes_a ? p.m : p.k);
  const ConstMatrixMap<T> b(b_data, p.transposes_b ? p.n : p.k, p.transposes_b ? p.k : p.n);
  if (p.transposes_a && p.transposes_b) {
    add(a.transpose(), b.transpose());
  } else if (p.transposes_a) {
    add(a.transpose(), b);
  } else if (p.transposes_b) {
    add(a, b.transpose());
  } else {
    add(a, b);
  }
}

template <class T>
void multiply_batch(const MatMulProblem& p, const KernelArgs& args) {
  // A small batch of large products is split by Eigen, within each product.
  const std::int64_t batch_size = p.batch_size();
  const std::int64_t grain = batch_size < thread_count() ? batch_size : 1;
  parallel_for(batch_size, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t entry = first; entry < last; ++entry) {
      std::int64_t rest = entry;
      std::int64_t a_offset = 0;
      std::int64_t b_offset = 0;
      for (std::size_t axis = p.batch.size(); axis-- > 0;) {
        a_offset += rest % p.batch[axis] * p.a_steps[axis];
        b_offset += rest % p.batch[axis] * p.b_steps[axis];
        rest /= p.batch[axis];
      }
      multiply_one(p, args.input<T>(0) + a_offset, args.input<T>(1) + b_offset,
                   args.output<T>() + entry * p.m * p.n);
    }
  });
}

template <class T>
Kernel make_typed(const KernelRequest& request) {
  const MatMulProblem problem(request);
  if (problem.is_empty) return [](const KernelArgs&) {};
  Kernel fill;
  if (problem.beta != 0.0F) fill = fill_with_c<T>(request, problem.beta);
  return [problem, fill](const KernelArgs& args) {
    if (fill) fill(args);
    multiply_batch<T>(problem, args);
  };
}

Kernel make_float_matmul(KernelRequest& request) {
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() { kernel = make_typed<T>(request); });
  return kernel;
}

/// On unsigned types, whose overflow is defined and gives the same bits. Alpha and beta are float
/// numbers: only 1 has a meaning here.
Kernel make_integer_matmul(KernelRequest& request) {
  const MatMulProblem problem(request);
  if (problem.alpha != 1.0F || (problem.beta != 0.0F && problem.beta != 1.0F)) return {};
  Kernel kernel;
  visit_dtype(TypeList<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>{}, request.dtype(),
              [&]<class T>() { kernel = make_typed<std::make_unsigned_t<T>>(request); });
  return kernel;
}

}  // namespace

void register_matmul_cpu(KernelRegistry& registry) {
  for (const char* op : {"MatMul", "Gemm"}) {
    registry.add({.op = op, .name = "matvec", .make = make_matvec});
    registry.add({.op = op, .name = "eigen", .make = make_float_matmul});
    registry.add({.op = op, .name = "eigen_integer", .make = make_integer_matmul});
  }
  registry.add({.op = "BatchedMatMul",
                .domain = kInternalDomain,
                .name = "eigen",
                .make = make_float_matmul});
}

}  // namespace graft
