#include <Eigen/Core>
#include <algorithm>

#include "core/base/machine.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/matmul.h"
#include "core/ops/kernels/workspace.h"

namespace graft {
namespace {

template <class T>
using ConstRows =
    Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
template <class T>
using ConstVector = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>>;
template <class T>
using Vector = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>>;

/// A vector times a matrix that lies as rows; in the same pieces of rows for every product, so that
/// in a training step each thread finds its rows in its own cache.
struct MatvecProblem {
  explicit MatvecProblem(const MatMulProblem& p)
      : matrix(p.m == 1 ? 1 : 0), alpha(p.alpha), adds(p.beta != 0.0F) {
    const bool lies_transposed = p.m == 1 ? p.transposes_b : !p.transposes_a;
    combines_rows = !lies_transposed;
    rows = combines_rows ? p.k : p.m * p.n;
    columns = combines_rows ? p.m * p.n : p.k;
    const std::int64_t worth = rows * columns / kElementwiseGrain;
    pieces = std::clamp<std::int64_t>(worth, 1, std::min<std::int64_t>(thread_count(), rows));
  }
  std::int64_t first_row(std::int64_t piece) const { return rows * piece / pieces; }

  int matrix;  // which input; the other is the vector
  bool combines_rows;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t pieces;
  float alpha;
  bool adds;
};

/// y[row] = matrix[row] . x
template <class T>
void dot_rows(const MatvecProblem& p, const KernelArgs& args) {
  const ConstVector<T> x(args.input<T>(1 - p.matrix), p.columns);
  parallel_for(p.pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = p.first_row(begin);
    const std::int64_t count = p.first_row(end) - first;
    const ConstRows<T> matrix(args.input<T>(p.matrix) + first * p.columns, count, p.columns);
    Vector<T> y(args.output<T>() + first, count);
    if (!p.adds) y.setZero();
    y.noalias() += static_cast<T>(p.alpha) * (matrix * x);
  });
}

/// y = sum of x[row] * matrix[row]: each piece by itself, then the pieces in their order.
template <class T>
void combine_rows(const MatvecProblem& p, const KernelArgs& args) {
  const ConstVector<T> x(args.input<T>(1 - p.matrix), p.rows);
  T* const partial = static_cast<T*>(args.workspace);
  parallel_for(p.pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t first = p.first_row(piece);
      const std::int64_t count = p.first_row(piece + 1) - first;
      const ConstRows<T> matrix(args.input<T>(p.matrix) + first * p.columns, count, p.columns);
      Vector<T> sum(partial + piece * p.columns, p.columns);
      sum.setZero();
      sum.noalias() += matrix.transpose() * x.segment(first, count);
    }
  });
  Vector<T> y(args.output<T>(), p.columns);
  if (!p.adds) y.setZero();
  for (std::int64_t piece = 0; piece < p.pieces; ++piece) {
    y += static_cast<T>(p.alpha) * ConstVector<T>(partial + piece * p.columns, p.columns);
  }
}

template <class T>
Kernel make_typed(KernelRequest& request, const MatMulProblem& product) {
  const MatvecProblem p(product);
  if (p.combines_rows) {
    WorkspaceLayout layout;
    layout.reserve<T>(checked_multiply(p.pieces, p.columns));
    request.need_workspace(layout.bytes());
  }
  Kernel fill;
  if (p.adds) fill = fill_with_c<T>(request, product.beta);
  return [p, fill](const KernelArgs& args) {
    if (fill) fill(args);
    p.combines_rows ? combine_rows<T>(p, args) : dot_rows<T>(p, args);
  };
}

}  // namespace

Kernel make_matvec(KernelRequest& request) {
  Kernel kernel;
  const MatMulProblem product(request);
  if (!product.is_matvec()) return kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(),
                     [&]<class T>() { kernel = make_typed<T>(request, product); });
  return kernel;
}

}  // namespace graft
