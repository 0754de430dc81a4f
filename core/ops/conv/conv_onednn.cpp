#include <algorithm>
#include <string_view>

#include "core/ops/conv/conv_call_onednn.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/kernels/column_sums.h"
#include "core/ops/kernels/onednn.h"
#include "core/ops/kernels/onednn_columns.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using Dims = dnnl::memory::dims;

/// A pointwise convolution of so few rows that bringing the weight into the primitive's own layout
/// in each run takes longer than the primitive gains by it over a plain product: from 10 to 70 % of
/// its time.
bool suits_product(const ConvGeometry& geometry, const TensorSpec& x, const TensorSpec& y) {
  constexpr std::int64_t kMostRows = 1024;
  return is_pointwise(geometry) && row_count(geometry) <= kMostRows && lies_in_rows(x) &&
         lies_in_rows(y);
}

/// y = x w^T, rows of channels. Empty where oneDNN has but its reference for it.
Kernel pointwise_product(KernelRequest& request, const ConvGeometry& geometry) {
  const dnnl::memory::desc x = onednn_dense({row_count(geometry), geometry.inputs});
  const dnnl::memory::desc y = onednn_dense({row_count(geometry), geometry.outputs});
  const dnnl::memory::desc w({geometry.inputs, geometry.outputs}, dnnl::memory::data_type::f32,
                             Dims{1, geometry.inputs});
  const bool has_bias = request.has_input(2);
  const auto bias = has_bias ? onednn_dense({1, geometry.outputs}) : dnnl::memory::desc();
  const dnnl::matmul::primitive_desc desc(onednn_engine(), x, w, bias, y, onednn_attributes());
  if (std::string_view(desc.impl_info_str()).starts_with("ref")) return {};
  std::vector<OnednnOperand> operands{{DNNL_ARG_SRC, x, onednn_input(0)},
                                      {DNNL_ARG_WEIGHTS, w, onednn_input(1)},
                                      {DNNL_ARG_DST, y, onednn_output()}};
  if (has_bias) operands.push_back({DNNL_ARG_BIAS, bias, onednn_input(2)});
  OnednnProgram program;
  program.add(desc, operands);
  return program.finish(request);
}

/// dx = dy w + addend, of rows.
Kernel input_product(const ConvGeometry& geometry) {
  return [rows = row_count(geometry), n = geometry.inputs,
          k = geometry.outputs](const KernelArgs& args) {
    const auto* const addend = args.input<float>(2);
    auto* const dx = args.output<float>();
    if (addend != nullptr && addend != dx) std::copy_n(addend, rows * n, dx);
    onednn_sgemm(false, rows, n, k, 1.0F, args.input<float>(0), args.input<float>(1),
                 addend == nullptr ? 0.0F : 1.0F, dx);
  };
}

/// For a few channels of x oneDNN's first choice, a product for each tap of the kernel, is slower
/// than the direct convolution behind it (by 2 to 60 % from 12 to 40 channels).
void choose_for_few_channels(const ConvGeometry& geometry,
                             dnnl::convolution_backward_data::primitive_desc& desc) {
  constexpr std::int64_t kFewest = 8;
  constexpr std::int64_t kMost = 40;
  const bool is_few = geometry.inputs >= kFewest && geometry.inputs <= kMost;
  if (!is_few || geometry.groups > 1 || geometry.taps() == 1) return;
  if (std::string_view(desc.impl_info_str()).find("brg") == std::string_view::npos) return;
  desc.next_impl();
}

Kernel conv_input_grad_kernel(KernelRequest& request) {
  ConvProblem problem =
      problem_of(request, request.output().shape, request.shape(1), request.shape(0));
  if (!problem.is_supported()) return {};
  const bool has_addend = request.has_input(2);
  if (suits_product(problem.geometry, request.output(), request.input(0)) &&
      (!has_addend || lies_in_rows(request.input(2)))) {
    return input_product(problem.geometry);
  }
  if (has_addend) return {};  // its primitives write the result
  if (lies_in_rows(request.output()) && lies_in_rows(request.input(0))) {
    if (Kernel columns = input_grad_by_columns(request, problem.geometry)) return columns;
  }
  const DType dtype = problem.dtype;
  // In bf16 oneDNN does these fifty times slower.
  if (problem.is_strided_depthwise()) problem.dtype = DType::f32;
  const auto forward = problem.forward(false);  // next_impl reads it again
  dnnl::convolution_backward_data::primitive_desc desc(
      onednn_engine(), dnnl::algorithm::convolution_direct, problem.image(problem.x),
      problem.any(problem.w), problem.image(problem.y), problem.strides, problem.dilations,
      problem.pads_begin, problem.pads_end, forward, onednn_attributes());
  choose_for_few_channels(problem.geometry, desc);
  OnednnProgram program;
  const OnednnOperand dy = read(program, DNNL_ARG_DIFF_DST, desc.diff_dst_desc(),
                                onednn_image(problem.y, request.layout(0), dtype), onednn_input(0));
  const OnednnOperand w = read_weight(program, request.constant(1), desc.weights_desc(),
                                      onednn_dense(problem.w, dtype));
  const Written dx(program, desc.diff_src_desc(),
                   onednn_image(problem.x, request.output().layout, dtype), onednn_output());
  program.add(desc, {dy, w, dx.operand(DNNL_ARG_DIFF_SRC)});
  dx.finish(program);
  return program.finish(request);
}

/// Weight [G,] M, C, K... as oneDNN's deconvolution sees it: [G,] C, M, K...
dnnl::memory::desc transposed_weight(const ConvProblem& problem, bool is_any) {
  Dims dims = problem.w.dims();
  Dims strides = problem.w.strides();
  const std::size_t axis = problem.geometry.groups > 1 ? 1 : 0;
  std::swap(dims[axis], dims[axis + 1]);
  std::swap(strides[axis], strides[axis + 1]);
  if (is_any) return problem.any(Shape(dims));
  return onednn_strided(dims, strides, problem.dtype);
}

Kernel conv_transpose_kernel(KernelRequest& request) {
  const Shape& from = request.shape(0);
  const Shape& to = request.output().shape;
  const ConvProblem problem(transposed_geometry(request.node(), to, request.shape(1), from),
                            request.dtype(), to, request.shape(1), from);
  if (!problem.is_supported()) return {};
  const bool has_bias = request.has_input(2);
  const auto bias = has_bias ? problem.dense({to[1]}) : dnnl::memory::desc();
  const dnnl::deconvolution_forward::primitive_desc desc(
      onednn_engine(), dnnl::prop_kind::forward_training, dnnl::algorithm::deconvolution_direct,
      problem.image(problem.y), transposed_weight(problem, true), bias, problem.image(problem.x),
      problem.strides, problem.dilations, problem.pads_begin, problem.pads_end,
      onednn_attributes());
  OnednnProgram program;
  std::vector<OnednnOperand> operands{
      read(program, DNNL_ARG_SRC, desc.src_desc(), problem.image(problem.y, request.layout(0)),
           onednn_input(0)),
      read_weight(program, request.constant(1), desc.weights_desc(),
                  transposed_weight(problem, false))};
  if (has_bias) operands.push_back({DNNL_ARG_BIAS, desc.bias_desc(), onednn_input(2)});
  const Written result(program, desc.dst_desc(), problem.image(problem.x, request.output().layout),
                       onednn_output());
  operands.push_back(result.operand(DNNL_ARG_DST));
  program.add(desc, operands);
  result.finish(program);
  return program.finish(request);
}

/// From few channels to many, over many rows: there the weight's gradient as a product of matrices,
/// whose rows are shorter than its kernels like them, takes up to a third longer than oneDNN's
/// primitive.
bool widens(const ConvGeometry& geometry) {
  constexpr std::int64_t kFewInputs = 32;
  constexpr std::int64_t kManyRows = 4096;
  return geometry.inputs <= kFewInputs && geometry.outputs >= 3 * geometry.inputs &&
         row_count(geometry) >= kManyRows;
}

/// dw of a pointwise convolution: dy^T x of rows. Up to twice as fast as oneDNN's primitive.
Kernel weight_product(const ConvGeometry& geometry) {
  return [rows = row_count(geometry), m = geometry.outputs,
          n = geometry.inputs](const KernelArgs& args) {
    onednn_sgemm(true, m, n, rows, 1.0F, args.input<float>(1), args.input<float>(0), 0.0F,
                 args.output<float>());
  };
}

/// With one tap and strides oneDNN's first choice writes whole vectors of 16 channels into scratch
/// memory that has room for the channels alone: beyond its end, and into that of other threads
/// (oneDNN 3.2). What it chooses next does not.
void avoid_overrun(const ConvProblem& problem,
                   dnnl::convolution_backward_weights::primitive_desc& desc) {
  constexpr std::int64_t kVector = 16;
  const bool has_strides =
      std::ranges::any_of(problem.strides, [](std::int64_t stride) { return stride > 1; });
  if (problem.geometry.taps() > 1 || !has_strides || problem.geometry.inputs % kVector == 0) return;
  while (std::string_view(desc.impl_info_str()).find("1x1") != std::string_view::npos) {
    if (!desc.next_impl()) throw dnnl::error(dnnl_unimplemented, "no weight gradient in bounds");
  }
}

void add_weight_grad(OnednnProgram& program, const KernelRequest& request,
                     const ConvProblem& problem, bool has_bias) {
  const auto bias = has_bias ? problem.dense({problem.y[1]}) : dnnl::memory::desc();
  const auto forward = problem.forward(has_bias);  // next_impl reads it again
  dnnl::convolution_backward_weights::primitive_desc desc(
      onednn_engine(), dnnl::algorithm::convolution_direct, problem.image(problem.x),
      problem.any(problem.w), bias, problem.image(problem.y), problem.strides, problem.dilations,
      problem.pads_begin, problem.pads_end, forward, onednn_attributes());
  avoid_overrun(problem, desc);
  const OnednnOperand x = read(program, DNNL_ARG_SRC, desc.src_desc(),
                               problem.image(problem.x, request.layout(0)), onednn_input(0));
  const OnednnOperand dy = read(program, DNNL_ARG_DIFF_DST, desc.diff_dst_desc(),
                                problem.image(problem.y, request.layout(1)), onednn_input(1));
  const Written dw(program, desc.diff_weights_desc(), problem.dense(problem.w), onednn_output());
  std::vector<OnednnOperand> operands{x, dy, dw.operand(DNNL_ARG_DIFF_WEIGHTS)};
  if (has_bias) operands.push_back({DNNL_ARG_DIFF_BIAS, desc.diff_bias_desc(), onednn_output(1)});
  program.add(desc, operands);
  dw.finish(program);
}

/// The bias gradient of rows of channels is summed apart: the primitive takes up to as long for it
/// as for the weight.
Kernel conv_weight_grad_kernel(KernelRequest& request) {
  const ConvProblem problem =
      problem_of(request, request.shape(0), request.output().shape, request.shape(1));
  if (!problem.is_supported()) return {};
  const ConvGeometry& geometry = problem.geometry;
  const bool has_bias = request.has_output(1);
  const bool sums_rows = has_bias && lies_in_rows(request.input(1));
  const bool is_product = is_pointwise(geometry) && !widens(geometry) &&
                          lies_in_rows(request.input(0)) && lies_in_rows(request.input(1)) &&
                          has_bias == sums_rows;
  const ColumnSums sums(row_count(geometry), problem.y[1]);
  OnednnProgram program;
  const OnednnSlot scratch = program.scratch(sums_rows ? sums.workspace_bytes() : 0);
  if (!is_product) add_weight_grad(program, request, problem, has_bias && !sums_rows);
  Kernel dw = program.finish(request);
  if (is_product) dw = weight_product(geometry);
  if (!sums_rows) return dw;
  return [dw = std::move(dw), sums, scratch](const KernelArgs& args) {
    dw(args);
    sums.run(args.input<float>(1), args.output<float>(1), scratch.pointer(args));
  };
}

}  // namespace

Kernel make_conv_onednn(KernelRequest& request) {
  const ConvCall call(request);
  if (!call.problem.is_supported()) return {};
  if (!call.weight.defined() &&
      suits_product(call.problem.geometry, request.input(0), request.output())) {
    if (Kernel product = pointwise_product(request, call.problem.geometry)) return product;
  }
  return call.program(call.problem.forward(call.has_bias)).finish(request);
}

void register_conv_onednn(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add(
        {.op = op, .domain = domain, .name = "onednn", .make = make, .knows_layouts = true});
  };
  add("Conv", "", unless_refused<make_conv_onednn>);
  add("ConvTranspose", "", unless_refused<conv_transpose_kernel>);
  add("ConvInputGrad", kInternalDomain, unless_refused<conv_input_grad_kernel>);
  add("ConvWeightGrad", kInternalDomain, unless_refused<conv_weight_grad_kernel>);
}

}  // namespace graft
