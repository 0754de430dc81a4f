#include "core/ops/train/update_cuda.h"

#include "core/device/cuda/cuda_device.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

constexpr int kRate = 2;
constexpr int kStep = 3;
constexpr int kFirstState = 4;

/// The settings of each rule, with the defaults of update_cpu.cpp.
void read_settings(const Attributes& a, DeviceUpdate& u) {
  u.decay = a.get_float("weight_decay", 0.0F);
  switch (u.kind) {
    case UpdateKind::sgd:
      u.beta1 = a.get_float("momentum", 0.0F);
      u.beta2 = a.get_float("dampening", 0.0F);
      u.nesterov = a.get_int("nesterov", 0) != 0;
      return;
    case UpdateKind::adam:
      u.beta1 = a.get_float("beta1", 0.9F);
      u.beta2 = a.get_float("beta2", 0.999F);
      u.epsilon = a.get_float("epsilon", 1e-8F);
      u.decoupled = a.get_int("decoupled", 0) != 0;
      return;
    case UpdateKind::rmsprop:
      u.beta1 = a.get_float("alpha", 0.99F);
      u.beta2 = a.get_float("momentum", 0.0F);
      u.epsilon = a.get_float("epsilon", 1e-8F);
      return;
    case UpdateKind::adagrad:
      u.beta1 = a.get_float("lr_decay", 0.0F);
      u.epsilon = a.get_float("epsilon", 1e-10F);
      return;
    case UpdateKind::accumulate:
      u.beta1 = a.get_float("scale", 1.0F);
      return;
  }
}

void take_memory(const KernelArgs& args, DeviceUpdate& u) {
  u.parameter = args.input<float>(0);
  u.gradient = args.input<void>(1);
  u.rate = args.input<float>(kRate);
  u.step = args.input<std::int64_t>(kStep);
  u.new_parameter = args.output<float>(0);
  for (int i = 0; i < DeviceUpdate::kMostStates; ++i) {
    u.state[i] = args.input<void>(kFirstState + i);
    u.new_state[i] = args.output<void>(1 + i);
  }
}

template <UpdateKind kind>
Kernel make_update(KernelRequest& request) {
  const auto is_bf16 = [&](int input) { return request.dtype(input) == DType::bf16; };
  if (request.dtype() != DType::f32 || (request.dtype(1) != DType::f32 && !is_bf16(1))) return {};
  DeviceUpdate u{.kind = kind, .size = request.shape().size(), .gradient_is_bf16 = is_bf16(1)};
  for (int i = 0; i < DeviceUpdate::kMostStates; ++i) u.state_is_bf16[i] = is_bf16(kFirstState + i);
  read_settings(request.attributes(), u);
  return [u, stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
    DeviceUpdate call = u;
    take_memory(args, call);
    call.run(stream);
  };
}

Kernel make_assign(KernelRequest& request) {
  return [bytes = bytes_of(request.dtype(), request.shape().size()),
          device = &as_cuda(request.device())](const KernelArgs& args) {
    device->copy_async(args.outputs[0], args.inputs[1], bytes);
  };
}

}  // namespace

void register_update_cuda(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, KernelFactory make) {
    registry.add({.op = op,
                  .domain = kInternalDomain,
                  .device = DeviceKind::cuda,
                  .name = "plain",
                  .make = make});
  };
  add("SgdUpdate", make_update<UpdateKind::sgd>);
  add("AdamUpdate", make_update<UpdateKind::adam>);
  add("RmspropUpdate", make_update<UpdateKind::rmsprop>);
  add("AdagradUpdate", make_update<UpdateKind::adagrad>);
  add("Accumulate", make_update<UpdateKind::accumulate>);
  add("Assign", make_assign);
}

}  // namespace graft
