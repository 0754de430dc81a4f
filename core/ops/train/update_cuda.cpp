#include "core/ops/train/update_cuda.h"

#include <algorithm>

#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/product_cuda.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/together.h"
#include "core/ops/train/product_update_kernels.h"

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

/// `states`: how many inputs from the first state on are states.
void take_memory(const KernelArgs& args, int states, const void* gradient, DeviceUpdate& u) {
  u.parameter = args.input<float>(0);
  u.gradient = gradient;
  u.rate = args.input<float>(kRate);
  u.step = args.input<std::int64_t>(kStep);
  u.new_parameter = args.output<float>(0);
  for (int i = 0; i < states; ++i) {
    u.state[i] = args.input<void>(kFirstState + i);
    u.new_state[i] = args.output<void>(1 + i);
  }
}

/// The update of the node, but for its memory.
DeviceUpdate update_of(const KernelRequest& request, UpdateKind kind, int states) {
  DeviceUpdate u{.kind = kind, .size = request.shape().size()};
  for (int i = 0; i < states; ++i) {
    u.state_is_bf16[i] = request.dtype(kFirstState + i) == DType::bf16;
  }
  read_settings(request.attributes(), u);
  return u;
}

/// What waits while a Together exists.
struct Waiting {
  bool is_open = false;
  DeviceUpdates updates;

  void flush(Device& device) {
    updates.run(as_cuda(device).stream());
    updates.count = 0;
  }
};
thread_local Waiting waiting;

void begin_together(Device&) {
  waiting.is_open = true;
}

void end_together(Device& device) {
  waiting.flush(device);
  waiting.is_open = false;
}

void run_or_wait(const DeviceUpdate& update, Device& device) {
  if (!waiting.is_open || update.size == 0) return update.run(as_cuda(device).stream());
  DeviceUpdates& all = waiting.updates;
  const bool fits =
      all.count < DeviceUpdates::kMost && (all.count == 0 || all.updates[0].kind == update.kind);
  if (!fits) waiting.flush(device);
  all.updates[all.count++] = update;
}

template <UpdateKind kind>
Kernel make_update(KernelRequest& request) {
  const bool is_bf16 = request.dtype(1) == DType::bf16;
  if (request.dtype() != DType::f32 || (request.dtype(1) != DType::f32 && !is_bf16)) return {};
  constexpr int kStates = DeviceUpdate::kMostStates;
  DeviceUpdate u = update_of(request, kind, kStates);
  u.gradient_is_bf16 = is_bf16;
  return [u, device = &request.device()](const KernelArgs& args) {
    DeviceUpdate call = u;
    take_memory(args, kStates, args.inputs[1], call);
    run_or_wait(call, *device);
  };
}

/// Of a vector: its gradient is summed where it is used, without a launch.
template <UpdateKind kind>
Kernel make_row_update(KernelRequest& request) {
  const MatMulProblem problem = gradient_product(request);
  if (request.dtype() != DType::f32 || problem.m != 1 || problem.k == 0 || problem.transposes_b) {
    return {};
  }
  const int states = std::min(request.input_count() - 1 - kFirstState, DeviceUpdate::kMostStates);
  DeviceUpdate u = update_of(request, kind, states);
  u.rows = problem.k;
  u.scale = problem.alpha;
  return [u, states, device = &request.device()](const KernelArgs& args) {
    DeviceUpdate call = u;
    take_memory(args, states, right_operand<float>(args), call);
    call.factors = left_operand<float>(args);
    run_or_wait(call, *device);
  };
}

/// SGD without momentum and decay: the product adds to the parameter.
Kernel adding_product(KernelRequest& request, const DeviceProduct& product, ProductBy by) {
  const CudaProduct prepared = prepare_product(product, request, by, /*has_rate=*/true);
  if (!prepared.run) return {};
  request.need_workspace(prepared.workspace_bytes);
  return [run = prepared.run](const KernelArgs& args) {
    run(left_operand<void>(args), right_operand<void>(args), args.input<void>(0),
        args.output<void>(), args.input<void>(kRate), args.workspace);
  };
}

/// The gradient is made in the workspace, unless the product can add to the parameter.
template <UpdateKind kind, ProductBy by>
Kernel make_product_update(KernelRequest& request) {
  if (request.dtype() != DType::f32 && request.dtype() != DType::f64) return {};
  const MatMulProblem problem = gradient_product(request);
  if (problem.is_empty) return [](const KernelArgs&) {};
  DeviceProduct product(problem);
  if (only_adds(request.node())) {
    product.beta = 1.0;
    product.c_row = product.n;
    product.c_column = 1;
    return adding_product(request, product, by);
  }
  if (request.dtype() != DType::f32) return {};
  const CudaProduct prepared = prepare_product(product, request, by, /*has_rate=*/false);
  if (!prepared.run) return {};
  const int states = std::min(request.input_count() - 1 - kFirstState, DeviceUpdate::kMostStates);
  const DeviceUpdate u = update_of(request, kind, states);
  WorkspaceLayout layout;
  const std::size_t gradient_at = layout.reserve<float>(u.size);
  const std::size_t own = layout.reserve_bytes(prepared.workspace_bytes);
  request.need_workspace(layout.bytes());
  return
      [=, run = prepared.run, stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
        auto* const gradient = workspace_at<float>(args, gradient_at);
        run(left_operand<void>(args), right_operand<void>(args), nullptr, gradient, nullptr,
            workspace_at<void>(args, own));
        DeviceUpdate call = u;
        take_memory(args, states, gradient, call);
        call.run(stream);
      };
}

Kernel make_assign(KernelRequest& request) {
  return [bytes = bytes_of(request.dtype(), request.shape().size()),
          device = &as_cuda(request.device())](const KernelArgs& args) {
    device->copy_async(args.outputs[0], args.inputs[1], bytes);
  };
}

template <ProductBy by>
void add_product_updates(KernelRegistry& registry, std::string_view name) {
  add_cuda_kernels(
      registry, name,
      {{"SgdProductUpdate", make_product_update<UpdateKind::sgd, by>, kInternalDomain},
       {"AdamProductUpdate", make_product_update<UpdateKind::adam, by>, kInternalDomain},
       {"RmspropProductUpdate", make_product_update<UpdateKind::rmsprop, by>, kInternalDomain},
       {"AdagradProductUpdate", make_product_update<UpdateKind::adagrad, by>, kInternalDomain}});
}

}  // namespace

void register_update_cuda(KernelRegistry& registry) {
  set_together_hooks(DeviceKind::cuda, {begin_together, end_together});
  add_cuda_kernels(registry, "plain",
                   {{"SgdUpdate", make_update<UpdateKind::sgd>, kInternalDomain},
                    {"AdamUpdate", make_update<UpdateKind::adam>, kInternalDomain},
                    {"RmspropUpdate", make_update<UpdateKind::rmsprop>, kInternalDomain},
                    {"AdagradUpdate", make_update<UpdateKind::adagrad>, kInternalDomain},
                    {"Accumulate", make_update<UpdateKind::accumulate>, kInternalDomain},
                    {"Assign", make_assign, kInternalDomain}});
  add_cuda_kernels(
      registry, "rows",
      {{"SgdProductUpdate", make_row_update<UpdateKind::sgd>, kInternalDomain},
       {"AdamProductUpdate", make_row_update<UpdateKind::adam>, kInternalDomain},
       {"RmspropProductUpdate", make_row_update<UpdateKind::rmsprop>, kInternalDomain},
       {"AdagradProductUpdate", make_row_update<UpdateKind::adagrad>, kInternalDomain}});
  add_product_updates<ProductBy::cublaslt>(registry, "cublaslt");
  add_product_updates<ProductBy::tiles>(registry, "tiles");
}

}  // namespace graft
