#include <algorithm>
#include <cstring>

#include "core/ops/broadcast_internal.h"
#include "core/ops/elementwise_internal.h"
#include "core/ops/matmul_internal.h"
#include "core/ops/product_update_internal.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// In a plan the output is the parameter itself.
void take_parameter(const KernelArgs& args, std::size_t bytes) {
  if (args.inputs[2] != args.outputs[0] && bytes > 0) {
    std::memcpy(args.outputs[0], args.inputs[2], bytes);
  }
}

template <class T>
void scale(const T* from, T factor, T* to, std::int64_t size) {
  parallel_for(size, kElementwiseGrain, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) to[i] = factor * from[i];
  });
}

/// Each row of the parameter takes in the few rows of b while it is in the first cache.
template <class T>
Kernel make_rows(const KernelRequest& request) {
  const MatMulProblem p(request);
  const std::int64_t row_step = p.transposes_a ? 1 : p.k;
  const std::int64_t inner_step = p.transposes_a ? p.m : 1;
  const std::size_t bytes = bytes_of(request.dtype(), p.m * p.n);
  return [=, m = p.m, n = p.n, k = p.k, alpha = p.alpha](const KernelArgs& args) {
    take_parameter(args, bytes);
    const T rate = -*args.input<T>(3) * static_cast<T>(alpha);
    parallel_for(m, kElementwiseGrain / std::max<std::int64_t>(1, n) + 1,
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t i = first; i < last; ++i) {
                     const T* const a = args.input<T>(0) + i * row_step;
                     ArrayMap<T> row(args.output<T>() + i * n, n);
                     for (std::int64_t j = 0; j < k; ++j) {
                       row +=
                           rate * a[j * inner_step] * ConstArrayMap<T>(args.input<T>(1) + j * n, n);
                     }
                   }
                 });
  };
}

Kernel make_by_rows(KernelRequest& request) {
  if (!updates_by_rows(request)) return {};
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() { kernel = make_rows<T>(request); });
  return kernel;
}

Kernel make_by_eigen(KernelRequest& request) {
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(),
              [&]<class T>() { kernel = make_product_update<T>(request, eigen_product<T>); });
  return kernel;
}

}  // namespace

/// The smaller operand is scaled by the rate; the product adds to the parameter where it lies.
template <class T>
Kernel make_product_update(KernelRequest& request, MakeProduct<T> make_product) {
  const MatMulProblem p(request);
  const Shape& a = request.shape(0);
  const Shape& b = request.shape(1);
  const auto product = make_product({.m = p.m,
                                     .n = p.n,
                                     .k = p.k,
                                     .lda = a[1],
                                     .ldb = b[1],
                                     .ldc = p.n,
                                     .transposes_a = p.transposes_a,
                                     .transposes_b = p.transposes_b,
                                     .adds = true});
  const bool scales_a = a.size() < b.size();
  const std::int64_t count = scales_a ? a.size() : b.size();
  WorkspaceLayout layout;
  const std::size_t scaled = layout.reserve<T>(count);
  const std::size_t scratch = layout.reserve_bytes(product.scratch_bytes);
  request.need_workspace(layout.bytes());
  const std::size_t bytes = bytes_of(request.dtype(), request.output().shape.size());
  return [=, alpha = p.alpha](const KernelArgs& args) {
    take_parameter(args, bytes);
    T* const copy = workspace_at<T>(args, scaled);
    scale(args.input<T>(scales_a ? 0 : 1), -*args.input<T>(3) * static_cast<T>(alpha), copy, count);
    product.run(scales_a ? copy : args.input<T>(0), scales_a ? args.input<T>(1) : copy,
                args.output<T>(), workspace_at<std::byte>(args, scratch));
  };
}

template Kernel make_product_update<float>(KernelRequest& request, MakeProduct<float>);
template Kernel make_product_update<double>(KernelRequest& request, MakeProduct<double>);

bool updates_by_rows(const KernelRequest& request) {
  constexpr std::int64_t kFew = 4;
  const MatMulProblem p(request);
  return p.k <= kFew && (!p.transposes_b || p.k == 1);
}

void register_product_update_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view name, KernelFactory make) {
    registry.add({.op = "SgdProductUpdate", .domain = kInternalDomain, .name = name, .make = make});
  };
  add("by_rows", make_by_rows);
  add("eigen", make_by_eigen);
}

}  // namespace graft
