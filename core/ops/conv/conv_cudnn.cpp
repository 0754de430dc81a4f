#include <optional>

#include "core/base/at.h"
#include "core/device/cuda/convolution.h"
#include "core/ops/conv/conv_cuda.h"
#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/tf32.h"

namespace graft {
namespace {

using Part = Convolution::Part;
using Types = TypeList<float, BFloat16>;

/// Padding behind an axis with which it has exactly `axis.output` windows: as much as before it, if
/// that does; libraries are fastest so.
std::int64_t padding_behind(const WindowAxis& axis) {
  const std::int64_t read = (axis.output - 1) * axis.stride + axis.extent();
  const std::int64_t even = axis.input + 2 * axis.pad_begin - read;
  return even >= 0 && even < axis.stride ? axis.pad_begin : read - axis.input - axis.pad_begin;
}

/// Nothing for what libraries do not take.
std::optional<Convolution> convolution_of(const KernelRequest& request, const ConvGeometry& g,
                                          Part part) {
  if (g.rank > 3 || (request.dtype() != DType::f32 && request.dtype() != DType::bf16)) return {};
  Convolution c{
      .part = part,
      .type = request.dtype() == DType::bf16 ? Convolution::Type::bf16 : Convolution::Type::f32,
      .allows_tf32 = allows_tf32(request.attributes()),
      .x = {g.batch, g.groups * g.inputs},
      .w = {g.groups * g.outputs, g.inputs},
      .y = {g.batch, g.groups * g.outputs}};
  const int axes = g.rank == 3 ? 3 : 2;  // one axis gets a height of 1
  for (int i = 3 - axes; i < 3; ++i) {
    const WindowAxis& axis = at(g.axes, i);
    c.x.push_back(axis.input);
    c.w.push_back(axis.kernel);
    c.y.push_back(axis.output);
    c.strides.push_back(axis.stride);
    c.dilations.push_back(axis.dilation);
    c.pads_begin.push_back(axis.pad_begin);
    c.pads_end.push_back(padding_behind(axis));
    if (axis.input == 0 || axis.output == 0 || axis.pad_begin < 0 || c.pads_end.back() < 0) {
      return {};
    }
  }
  if (g.batch == 0 || g.inputs == 0 || g.outputs == 0) return {};
  return c;
}

using PlanPtr = std::shared_ptr<const ConvolutionPlan>;

/// Null where nothing takes it; else the request gets its workspace.
PlanPtr plan_for(KernelRequest& request, const std::optional<Convolution>& convolution) {
  if (!convolution) return nullptr;
  PlanPtr plan = plan_convolution(*convolution, as_cuda(request.device()));
  if (plan != nullptr) request.need_workspace(plan->workspace_bytes());
  return plan;
}

Kernel make_conv(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.shape(0), request.shape(1), request.output().shape);
  const PlanPtr plan = plan_for(request, convolution_of(request, g, Part::forward));
  if (plan == nullptr) return {};
  const ChannelPlanes y{g.batch, g.groups * g.outputs, g.output_plane()};
  return cuda_kernel(Types{}, request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    plan->run(args.inputs[0], args.inputs[1], args.outputs[0], args.workspace);
    const T* const bias = args.input<T>(2);
    if (bias != nullptr) add_to_channels(y, bias, args.output<T>(), stream);
  });
}

Kernel make_conv_input_grad(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.output().shape, request.shape(1), request.shape(0));
  auto convolution = convolution_of(request, g, Part::input_gradient);
  const bool adds = request.has_input(2);
  if (convolution) convolution->adds = adds;
  const PlanPtr plan = plan_for(request, convolution);
  if (plan == nullptr) return {};
  const std::size_t bytes = bytes_of(request.dtype(), request.output().shape.size());
  return [=, device = &as_cuda(request.device())](const KernelArgs& args) {
    void* const dx = args.outputs[0];
    if (adds && args.inputs[2] != dx) device->copy_async(dx, args.inputs[2], bytes);
    plan->run(dx, args.inputs[1], args.inputs[0], args.workspace);
  };
}

Kernel make_conv_transpose(KernelRequest& request) {
  const ConvGeometry g = transposed_geometry(request.node(), request.output().shape,
                                             request.shape(1), request.shape(0));
  const PlanPtr plan = plan_for(request, convolution_of(request, g, Part::input_gradient));
  if (plan == nullptr) return {};
  const ChannelPlanes x{g.batch, g.groups * g.inputs, g.input_plane()};
  return cuda_kernel(Types{}, request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    plan->run(args.outputs[0], args.inputs[1], args.inputs[0], args.workspace);
    const T* const bias = args.input<T>(2);
    if (bias != nullptr) add_to_channels(x, bias, args.output<T>(), stream);
  });
}

Kernel make_conv_weight_grad(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.shape(0), request.output().shape, request.shape(1));
  const PlanPtr plan = plan_for(request, convolution_of(request, g, Part::weight_gradient));
  if (plan == nullptr) return {};
  const ChannelPlanes dy{g.batch, g.groups * g.outputs, g.output_plane()};
  return cuda_kernel(Types{}, request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    plan->run(args.inputs[0], args.outputs[0], args.inputs[1], args.workspace);
    T* const db = args.output<T>(1);
    if (db != nullptr) sum_channels(dy, args.input<T>(1), db, stream);
  });
}

}  // namespace

/// By cuDNN; images are row-major.
void register_conv_cudnn(KernelRegistry& registry) {
  add_cuda_kernels(registry, "cudnn",
                   {{"Conv", make_conv},
                    {"ConvTranspose", make_conv_transpose},
                    {"ConvInputGrad", make_conv_input_grad, kInternalDomain},
                    {"ConvWeightGrad", make_conv_weight_grad, kInternalDomain}});
}

}  // namespace graft
