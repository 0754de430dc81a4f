#include <type_traits>

#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/matmul.h"
#include "core/ops/kernels/multiply.h"
#include "core/ops/kernels/product.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/product/product_start.h"
#include "core/ops/registry.h"

namespace graft {

namespace {

template <class T>
void multiply_one(const MatMulProblem& p, const T* a, const T* b, T* y) {
  ProductSpec spec = product_of_rows(p, p.m);
  spec.adds = p.beta != 0.0F;
  multiply(spec, static_cast<T>(p.alpha), a, b, y);
}

template <class T>
void multiply_batch(const MatMulProblem& p, const KernelArgs& args) {
  // In a small batch, each product is split.
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
  if constexpr (std::is_same_v<T, float>) {
    if (problem.batch.empty()) {
      return [alpha = problem.alpha, spec = product_of_rows(problem, problem.m),
              start = ProductStart(request, problem)](const KernelArgs& args) {
        multiply_onto(spec, alpha, args.input<float>(0), args.input<float>(1), start.of(args),
                      args.output<float>());
      };
    }
  }
  Kernel fill;
  if (problem.beta != 0.0F) fill = fill_with_c<T>(request, problem.beta);
  return [problem, fill](const KernelArgs& args) {
    if (fill) fill(args);
    multiply_batch<T>(problem, args);
  };
}

template <class T>
Kernel make_float_matmul(KernelRequest& request) {
  if (!is_kernel_dtype<T>(request.dtype())) return {};
  return make_typed<T>(request);
}

/// b is known before the run and is brought into panels then.
Kernel make_by_known_panels(KernelRequest& request) {
  const Tensor known = request.constant(1);
  if (request.dtype() != DType::f32 || !known.defined()) return {};
  const MatMulProblem p(request);
  if (p.is_empty || p.k == 0 || !p.batch.empty() || p.alpha != 1.0F) return {};
  ProductSpec spec = product_of_rows(p, p.m);
  spec.packs_b = true;
  WorkspaceLayout layout;
  const RepeatedProduct<float> product(plain_product<float>(spec), layout,
                                       known.values<const float>().data());
  return [spec, product, start = ProductStart(request, p)](const KernelArgs& args) {
    const Addend addend = start.of(args);
    multiply_packed_onto(spec, args.input<float>(0), product.prepare(args, args.input<float>(1)),
                         addend, args.output<float>());
  };
}

/// On unsigned types, whose overflow is defined and gives the same bits. Alpha and beta are float
/// numbers: only 1 has a meaning here.
Kernel make_integer_matmul(KernelRequest& request) {
  const MatMulProblem problem(request);
  if (problem.alpha != 1.0F || (problem.beta != 0.0F && problem.beta != 1.0F)) return {};
  Kernel kernel;
  visit_kernel_dtype(TypeList<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>{},
                     request.dtype(),
                     [&]<class T>() { kernel = make_typed<std::make_unsigned_t<T>>(request); });
  return kernel;
}

}  // namespace

void register_matmul_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, std::string_view name,
                       KernelFactory make) {
    registry.add({.op = op, .domain = domain, .name = name, .make = make, .serves_alike = true});
  };
  for (const char* op : {"MatMul", "Gemm"}) {
    add(op, "", "matvec", make_matvec);
    add(op, "", "known_panels", make_by_known_panels);
    add(op, "", "panels", make_float_matmul<float>);
    add(op, "", "eigen", make_float_matmul<double>);
    add(op, "", "integers", make_integer_matmul);
  }
  add("BatchedMatMul", kInternalDomain, "panels", make_float_matmul<float>);
  add("BatchedMatMul", kInternalDomain, "eigen", make_float_matmul<double>);
}

}  // namespace graft
