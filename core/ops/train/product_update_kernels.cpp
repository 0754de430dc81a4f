#include "core/ops/train/product_update_kernels.h"

#include <algorithm>
#include <cstring>

#include "core/base/at.h"
#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/train/update_rule.h"

namespace graft {
namespace {

template <class T>
void scale(const T* from, T factor, T* to, std::int64_t size) {
#pragma omp simd
  for (std::int64_t i = 0; i < size; ++i) to[i] = factor * from[i];
}

/// One thread's share of the rows, and products of its own: their operands are bound at each run.
template <class T>
struct Worker {
  std::int64_t first;
  std::int64_t last;
  Product<T> piece;
  Product<T> rest;  ///< of the rows that fill no piece
  std::size_t gradient;
  std::size_t scratch;
};

template <class T>
class UpdateByPieces {
 public:
  UpdateByPieces(KernelRequest& request, UpdateRule rule, MakeProduct<T> make_product,
                 std::int64_t piece_bytes)
      : p_(gradient_product(request)),
        rule_(std::move(rule)),
        row_step_(p_.transposes_a ? 1 : p_.k) {
    const std::int64_t threads = thread_count();
    rows_ = rows_of_piece(p_, piece_bytes, sizeof(T));
    WorkspaceLayout layout;
    for (std::int64_t i = 0; i < threads; ++i) {
      workers_.push_back(
          worker(p_.m * i / threads, p_.m * (i + 1) / threads, make_product, layout));
    }
    packed_ = layout.reserve_bytes(workers_.front().piece.packed_bytes);
    request.need_workspace(layout.bytes());
  }

  void operator()(const KernelArgs& args) const {
    const void* const b = prepare(args);
    const auto count = static_cast<std::int64_t>(workers_.size());
    parallel_for(count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        run(at(workers_, i), args, b);
      }
    });
  }

 private:
  Worker<T> worker(std::int64_t first, std::int64_t last, MakeProduct<T> make_product,
                   WorkspaceLayout& layout) const {
    ProductSpec spec = product_of_rows(p_, rows_);
    spec.is_serial = true;
    spec.packs_b = true;
    Worker<T> made{first, last, make_product(spec), {}, 0, 0};
    spec.packs_b = false;
    spec.m = (last - first) % rows_;
    made.rest = make_product(spec);
    made.gradient = layout.reserve<T>(rows_ * p_.n);
    made.scratch =
        layout.reserve_bytes(std::max(made.piece.scratch_bytes, made.rest.scratch_bytes));
    return made;
  }

  /// b in the layout of the pieces.
  const void* prepare(const KernelArgs& args) const {
    const T* const b = right_operand<T>(args);
    const Product<T>& product = workers_.front().piece;
    if (product.packed_bytes == 0) return b;
    void* const packed = workspace_at<std::byte>(args, packed_);
    product.pack(b, packed);
    return packed;
  }

  void run(const Worker<T>& worker, const KernelArgs& args, const void* b) const {
    T* const gradient = workspace_at<T>(args, worker.gradient);
    void* const scratch = workspace_at<std::byte>(args, worker.scratch);
    for (std::int64_t row = worker.first; row < worker.last; row += rows_) {
      const std::int64_t end = std::min(row + rows_, worker.last);
      const T* const a = left_operand<T>(args) + row * row_step_;
      if (end - row == rows_) {
        worker.piece.run(a, b, gradient, scratch);
      } else {
        worker.rest.run(a, right_operand<T>(args), gradient, scratch);
      }
      const std::int64_t size = (end - row) * p_.n;
      if (p_.alpha != 1.0F) scale(gradient, static_cast<T>(p_.alpha), gradient, size);
      rule_({args, gradient, row * p_.n, end * p_.n});
    }
  }

  MatMulProblem p_;
  UpdateRule rule_;
  std::int64_t row_step_;  ///< from one row of a' to the next
  std::int64_t rows_ = 0;  ///< of a piece
  std::vector<Worker<T>> workers_;
  std::size_t packed_ = 0;
};

}  // namespace

MatMulProblem gradient_product(const KernelRequest& request) {
  MatMulProblem p(request, {.a = 1, .b = request.input_count() - 1, .c = -1});
  p.alpha = request.attributes().get_float("scale", 1.0F);
  return p;
}

std::int64_t rows_of_piece(const MatMulProblem& product, std::int64_t piece_bytes,
                           std::size_t element_bytes) {
  const std::int64_t share = (product.m + thread_count() - 1) / thread_count();
  const std::int64_t row_bytes = product.n * static_cast<std::int64_t>(element_bytes);
  return std::clamp<std::int64_t>(piece_bytes / row_bytes, 1, share);
}

void take_parameter(const KernelArgs& args, std::size_t bytes) {
  if (args.inputs[0] != args.outputs[0] && bytes > 0) {
    std::memcpy(args.outputs[0], args.inputs[0], bytes);
  }
}

bool adds_by_rows(const KernelRequest& request) {
  constexpr std::int64_t kFew = 4;
  const MatMulProblem p = gradient_product(request);
  return p.k <= kFew && (!p.transposes_b || p.k == 1);
}

namespace {

template <class T>
Kernel adding_rows(const KernelRequest& request) {
  const MatMulProblem p = gradient_product(request);
  const std::int64_t row_step = p.transposes_a ? 1 : p.k;
  const std::int64_t inner_step = p.transposes_a ? p.m : 1;
  const std::size_t bytes = bytes_of(request.dtype(), p.m * p.n);
  return [=, m = p.m, n = p.n, k = p.k, alpha = p.alpha](const KernelArgs& args) {
    take_parameter(args, bytes);
    const T rate = -*args.input<T>(2) * static_cast<T>(alpha);
    const std::int64_t grain = kElementwiseGrain / std::max<std::int64_t>(1, n) + 1;
    parallel_for(m, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        T* const row = args.output<T>() + i * n;
        for (std::int64_t j = 0; j < k; ++j) {
          const T* const b = right_operand<T>(args) + j * n;
          const T factor = rate * left_operand<T>(args)[i * row_step + j * inner_step];
#pragma omp simd
          for (std::int64_t column = 0; column < n; ++column) row[column] += factor * b[column];
        }
      }
    });
  };
}

}  // namespace

Kernel make_adding_rows(KernelRequest& request) {
  Kernel kernel;
  if (!only_adds(request.node()) || !adds_by_rows(request)) return kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(),
                     [&]<class T>() { kernel = adding_rows<T>(request); });
  return kernel;
}

/// The smaller operand is scaled by the rate; the product adds to the parameter where it lies.
template <class T>
Kernel make_adding_product(KernelRequest& request, MakeProduct<T> make_product) {
  if (!only_adds(request.node())) return {};
  const MatMulProblem p = gradient_product(request);
  ProductSpec spec = product_of_rows(p, p.m);
  spec.adds = true;
  const auto product = make_product(spec);
  const bool scales_a = p.m < p.n;
  const std::int64_t count = p.k * (scales_a ? p.m : p.n);
  WorkspaceLayout layout;
  const std::size_t scaled = layout.reserve<T>(count);
  const std::size_t scratch = layout.reserve_bytes(product.scratch_bytes);
  request.need_workspace(layout.bytes());
  const std::size_t bytes = bytes_of(request.dtype(), request.output().shape.size());
  return [=, alpha = p.alpha](const KernelArgs& args) {
    take_parameter(args, bytes);
    T* const copy = workspace_at<T>(args, scaled);
    const T* const from = scales_a ? left_operand<T>(args) : right_operand<T>(args);
    const T rate = -*args.input<T>(2) * static_cast<T>(alpha);
    parallel_for(count, kElementwiseGrain, [=](std::int64_t first, std::int64_t last) {
      scale(from + first, rate, copy + first, last - first);
    });
    product.run(scales_a ? copy : left_operand<T>(args), scales_a ? right_operand<T>(args) : copy,
                args.output<T>(), workspace_at<std::byte>(args, scratch));
  };
}

template Kernel make_adding_product<float>(KernelRequest& request, MakeProduct<float>);
template Kernel make_adding_product<double>(KernelRequest& request, MakeProduct<double>);

template <class T>
Kernel make_update_by_pieces(KernelRequest& request, MakeProduct<T> make_product,
                             std::int64_t piece_bytes) {
  UpdateRule rule = update_rule(request);
  if (!rule || request.dtype(1) != request.dtype()) return {};
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  return UpdateByPieces<T>(request, std::move(rule), make_product, piece_bytes);
}

template Kernel make_update_by_pieces<float>(KernelRequest& request, MakeProduct<float>,
                                             std::int64_t piece_bytes);
template Kernel make_update_by_pieces<double>(KernelRequest& request, MakeProduct<double>,
                                              std::int64_t piece_bytes);

}  // namespace graft
