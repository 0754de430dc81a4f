#include "core/ops/kernel.h"

#include "core/ops/as_f32_internal.h"
#include "core/ops/infer.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

TensorSpec spec_of(const Value* value) {
  if (value == nullptr) return {};
  return {value->dtype(), value->known_shape()};
}

const TensorSpec& at(const std::vector<TensorSpec>& specs, int index) {
  static const TensorSpec none;
  return static_cast<std::size_t>(index) < specs.size() ? specs[static_cast<std::size_t>(index)]
                                                        : none;
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
  for (int i = 0; i < node.input_count(); ++i) inputs_.push_back(spec_of(node.input(i)));
  for (int i = 0; i < node.output_count(); ++i) outputs_.push_back(spec_of(node.output(i)));
}

const TensorSpec& KernelRequest::input(int index) const {
  return at(inputs_, index);
}

const TensorSpec& KernelRequest::output(int index) const {
  return at(outputs_, index);
}

Tensor KernelRequest::constant(int index) const {
  return constant_of(node_.input(index));
}

PreparedKernel prepare_kernel(const Node& node, Device& device) {
  for (const KernelDef& def :
       KernelRegistry::instance().find(device.kind(), node.op_type(), node.domain())) {
    KernelRequest request(node, device);
    if (Kernel kernel = def.make(request)) {
      return {std::move(kernel), def.name, request.workspace_bytes()};
    }
  }
  if (PreparedKernel kernel = prepare_as_f32(node, device); kernel.run) return kernel;
  fail(ErrorKind::unsupported, "no ", device.name(), " kernel for ", describe_call(node), " (",
       node.label(), ")");
}

std::vector<PreparedKernel> prepare_all_kernels(const Node& node, Device& device) {
  std::vector<PreparedKernel> kernels;
  for (const KernelDef& def :
       KernelRegistry::instance().find(device.kind(), node.op_type(), node.domain())) {
    KernelRequest request(node, device);
    if (Kernel kernel = def.make(request)) {
      kernels.push_back({std::move(kernel), def.name, request.workspace_bytes()});
    }
  }
  if (kernels.empty()) {
    if (PreparedKernel kernel = prepare_as_f32(node, device); kernel.run) {
      kernels.push_back(std::move(kernel));
    }
  }
  return kernels;
}

}  // namespace graft
