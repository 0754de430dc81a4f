#include "core/ops/kernel.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/ops/chosen.h"
#include "core/ops/infer.h"
#include "core/ops/kernel_sets.h"
#include "core/ops/kernels/elementwise.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

TensorSpec spec_of(const Value* value) {
  if (value == nullptr) return {};
  return {value->dtype(), value->known_shape(), value->layout};
}

const TensorSpec& spec_or_none(const std::vector<TensorSpec>& specs, int index) {
  static const TensorSpec none;
  return static_cast<std::size_t>(index) < specs.size() ? at(specs, index) : none;
}

std::string describe_call(const Node& node) {
  std::string list;
  for (const Value* input : node.inputs()) {
    list +=
        (list.empty() ? "" : ", ") + (input == nullptr ? std::string("_") : text(input->type()));
  }
  return (node.domain().empty() ? "" : node.domain() + ".") + node.op_type() + "(" + list + ")";
}

}  // namespace

KernelRequest::KernelRequest(const Node& node, Device& device) : node_(node), device_(device) {
  inputs_.reserve(node.inputs().size());
  outputs_.reserve(static_cast<std::size_t>(node.output_count()));
  for (int i = 0; i < node.input_count(); ++i) inputs_.push_back(spec_of(node.input(i)));
  for (int i = 0; i < node.output_count(); ++i) outputs_.push_back(spec_of(node.output(i)));
  for (const auto* specs : {&inputs_, &outputs_}) {
    for (const TensorSpec& spec : *specs) note_lookup(spec.dtype);
  }
  const OpDef* const def = OpRegistry::instance().find(node);
  if (has_channels_last() && def != nullptr && def->layout.kind == LayoutRule::Kind::elementwise) {
    see_in_memory_order();
  }
}

bool KernelRequest::has_channels_last() const {
  const auto is_channels_last = [](const TensorSpec& spec) {
    return spec.layout == Layout::channels_last;
  };
  return std::ranges::any_of(inputs_, is_channels_last) ||
         std::ranges::any_of(outputs_, is_channels_last);
}

void KernelRequest::see_in_memory_order() {
  const int rank = output().shape.rank();
  for (auto* specs : {&inputs_, &outputs_}) {
    for (TensorSpec& spec : *specs) {
      spec.layout = Layout::row_major;
      if (spec.shape.rank() == 0 || spec.shape.rank() > rank) continue;
      spec.shape = channels_last_shape(with_leading_ones(spec.shape, rank));
    }
  }
}

const TensorSpec& KernelRequest::input(int index) const {
  return spec_or_none(inputs_, index);
}

const TensorSpec& KernelRequest::output(int index) const {
  return spec_or_none(outputs_, index);
}

Tensor KernelRequest::constant(int index) const {
  return constant_of(node_.input(index));
}

namespace {

Kernel make_kernel(const KernelDef& def, KernelRequest& request) {
  if (def.make != nullptr) return def.make(request);
  RunFunction run = def.make_run(request);
  return run ? elementwise_kernel(request, std::move(run)) : Kernel();
}

/// Nothing where there is nothing to do. A factory counts rows of no element, and asks for memory
/// by them, or refuses their number: [2^40, 0] has many.
Kernel make_nothing(const KernelDef& def, KernelRequest& request) {
  const Kernel nothing = [](const KernelArgs&) {};
  bool takes = true;
  try {
    takes = static_cast<bool>(make_kernel(def, request));
  } catch (const Error&) {
    takes = true;
  }
  request.need_workspace(0);
  return takes ? nothing : Kernel();
}

bool computes_nothing(const KernelRequest& request) {
  bool has_output = false;
  for (int i = 0; i < request.output_count(); ++i) {
    if (!request.has_output(i)) continue;
    if (request.output(i).shape.size() > 0) return false;
    has_output = true;
  }
  return has_output;
}

/// Calls use(kernel) for each candidate that takes the node, until it returns true.
template <class Use>
void for_each_kernel(const Node& node, Device& device, Use&& use) {
  KernelRequest request(node, device);
  const bool does_nothing = computes_nothing(request);
  for (const KernelDef& def :
       KernelRegistry::instance().find(device.kind(), node.op_type(), node.domain())) {
    request.need_workspace(0);  // what a candidate asked for that then did not take the node
    if (request.has_channels_last() && !def.knows_layouts) continue;
    Kernel kernel = does_nothing ? make_nothing(def, request) : make_kernel(def, request);
    if (!kernel) continue;
    const bool serves_alike = def.serves_alike || def.make_run != nullptr;
    if (use({std::move(kernel), def.name, request.workspace_bytes(), serves_alike})) return;
  }
}

}  // namespace

PreparedKernel find_kernel(const Node& node, Device& device) {
  PreparedKernel found;
  for_each_kernel(node, device, [&](PreparedKernel&& kernel) {
    found = std::move(kernel);
    return true;
  });
  return found;
}

RunFunction find_run_function(const Node& node, Device& device) {
  const std::span<const KernelDef> defs =
      KernelRegistry::instance().find(device.kind(), node.op_type(), node.domain());
  // Most ops have none, and making their kernels takes time.
  if (std::ranges::all_of(defs, [](const KernelDef& def) { return def.make_run == nullptr; })) {
    return {};
  }
  KernelRequest request(node, device);
  for (const KernelDef& def : defs) {
    if (def.make != nullptr) {
      if (def.make(request)) return {};
    } else if (RunFunction run = def.make_run(request)) {
      return run;
    }
  }
  return {};
}

namespace {

/// Through f32: by blocks where it can be, so that no operand is in memory twice.
PreparedKernel find_kernel_as_f32(const Node& node, Device& device) {
  if (device.kind() != DeviceKind::cpu) return {};  // the loops that convert run on the host
  static const KernelSet& kernels = chosen_kernel_set();
  if (RunFunction run = kernels.run_as_f32(node, device)) {
    const KernelRequest request(node, device);
    return {elementwise_kernel(request, std::move(run)), "as_f32"};
  }
  return kernels.prepare_as_f32(node, device);
}

}  // namespace

PreparedKernel prepare_kernel(const Node& node, Device& device) {
  PreparedKernel found = find_kernel(node, device);
  if (!found.run) found = find_kernel_as_f32(node, device);
  if (!found.run) {
    fail(ErrorKind::unsupported, "no ", device.name(), " kernel for ", describe_call(node), " (",
         node.label(), ")", missing_kernel());
  }
  return found;
}

std::vector<PreparedKernel> prepare_all_kernels(const Node& node, Device& device) {
  std::vector<PreparedKernel> kernels;
  for_each_kernel(node, device, [&](PreparedKernel&& kernel) {
    kernels.push_back(std::move(kernel));
    return false;
  });
  if (kernels.empty()) {
    if (PreparedKernel kernel = find_kernel_as_f32(node, device); kernel.run) {
      kernels.push_back(std::move(kernel));
    }
  }
  return kernels;
}

}  // namespace graft
