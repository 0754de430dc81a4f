#include <array>
#include <string_view>

#include "core/ops/kernels/matmul.h"
#include "core/ops/kernels/onednn.h"
#include "core/ops/kernels/product.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using Dims = std::vector<std::int64_t>;

/// An operand of a batch of products, as oneDNN sees it: [batch..., rows, columns] with strides, so
/// that a transposed operand is read where it lies.
dnnl::memory::desc operand(const MatMulProblem& p, const Dims& steps, std::int64_t rows,
                           std::int64_t columns, bool transposed, DType dtype) {
  Dims dims;
  Dims strides;
  for (std::size_t axis = 0; axis < p.batch.size(); ++axis) {
    dims.push_back(steps[axis] == 0 ? 1 : p.batch[axis]);
    strides.push_back(steps[axis] == 0 ? rows * columns : steps[axis]);
  }
  dims.insert(dims.end(), {rows, columns});
  const Dims inner = transposed ? Dims{1, rows} : Dims{columns, 1};
  strides.insert(strides.end(), inner.begin(), inner.end());
  return onednn_strided(dims, strides, dtype);
}

/// C is one row, so that oneDNN's bias serves.
bool c_is_bias(const KernelRequest& request, const MatMulProblem& p) {
  const Shape& c = request.shape(2);
  return p.alpha == 1.0F && p.beta == 1.0F && c.size() == p.n && c.rank() > 0 &&
         c[c.rank() - 1] == p.n;
}

/// A matrix b that is known before the run is brought into the primitive's own layout then: 2 to 8
/// rows by 512 x 512 take 0.2 to 0.4 of the time, 16 to 64 by 1024 x 1024 0.86 to 0.99, more no
/// less.
bool has_known_matrix(const KernelRequest& request, const MatMulProblem& p) {
  return p.batch.empty() && request.constant(1).defined();
}

Kernel make_sgemm(KernelRequest& request) {
  if (panels_suit() || request.dtype() != DType::f32) return {};
  const MatMulProblem p(request);
  if (p.is_matvec() || !suits_sgemm(p) || has_known_matrix(request, p)) return {};
  if (p.beta == 0.0F) {
    return [p](const KernelArgs& args) {
      run_sgemm(p, p.alpha, args.input<float>(0), args.input<float>(1), 0.0F, args.output<float>());
    };
  }
  return [p, fill = fill_with_c<float>(request, p.beta)](const KernelArgs& args) {
    fill(args);
    run_sgemm(p, p.alpha, args.input<float>(0), args.input<float>(1), 1.0F, args.output<float>());
  };
}

Kernel make_matmul(KernelRequest& request) {
  const DType dtype = request.dtype();
  if (!is_onednn_type(dtype)) return {};
  const MatMulProblem p(request);
  if (p.is_empty || p.k == 0 || p.is_matvec() || p.batch.size() + 2 > DNNL_MAX_NDIMS) return {};
  if (dtype == DType::f32 && panels_suit()) return {};
  if (!fits_onednn(std::array{p.m, p.n, p.k})) return {};

  Dims y_dims = p.batch;
  y_dims.insert(y_dims.end(), {p.m, p.n});
  const auto a = operand(p, p.a_steps, p.m, p.k, p.transposes_a, dtype);
  const auto given_b = operand(p, p.b_steps, p.k, p.n, p.transposes_b, dtype);
  const bool is_packed = has_known_matrix(request, p);
  const auto y = onednn_dense(Shape(std::move(y_dims)), dtype);
  const bool has_bias = p.beta != 0.0F && c_is_bias(request, p);
  const bool adds_to_y = p.beta != 0.0F && !has_bias;
  if (adds_to_y && dtype != DType::f32) return {};  // y would be rounded twice

  dnnl::primitive_attr attributes = onednn_attributes();
  dnnl::post_ops after;
  if (p.alpha != 1.0F) after.append_eltwise(dnnl::algorithm::eltwise_linear, p.alpha, 0.0F);
  if (adds_to_y) after.append_sum(1.0F);
  attributes.set_post_ops(after);

  const auto bias = has_bias ? onednn_dense({1, p.n}, dtype) : dnnl::memory::desc();
  const dnnl::matmul::primitive_desc description(
      onednn_engine(), a, is_packed ? onednn_any({p.k, p.n}, dtype) : given_b, bias, y, attributes,
      /*allow_empty=*/true);
  if (!description) return {};
  // oneDNN's own plain loops are slower than panels.
  if (std::string_view(description.impl_info_str()).substr(0, 3) == "ref") return {};

  OnednnProgram program;
  const auto b = description.weights_desc();
  const OnednnSlot matrix = is_packed && !is_same_layout(b, given_b)
                                ? program.constant(request.constant(1), given_b, b)
                                : onednn_input(1);
  std::vector<OnednnOperand> operands{{DNNL_ARG_SRC, a, onednn_input(0)},
                                      {DNNL_ARG_WEIGHTS, b, matrix},
                                      {DNNL_ARG_DST, y, onednn_output()}};
  if (has_bias) operands.push_back({DNNL_ARG_BIAS, bias, onednn_input(2)});
  program.add(description, operands);
  Kernel product = program.finish(request);
  if (!adds_to_y) return product;
  return [fill = fill_with_c<float>(request, p.beta),
          product = std::move(product)](const KernelArgs& args) {
    fill(args);
    product(args);
  };
}

}  // namespace

void register_matmul_onednn(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, std::string_view name,
                       KernelFactory make) {
    registry.add({.op = op, .domain = domain, .name = name, .make = make, .serves_alike = true});
  };
  for (const char* op : {"MatMul", "Gemm"}) {
    add(op, "", "onednn_sgemm", make_sgemm);
    add(op, "", "onednn", make_matmul);
  }
  add("BatchedMatMul", kInternalDomain, "onednn", make_matmul);
}

}  // namespace graft
