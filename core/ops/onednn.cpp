#include "core/ops/onednn_internal.h"

namespace graft::onednn {

const dnnl::engine& engine() {
  static const dnnl::engine shared(dnnl::engine::kind::cpu, 0);
  return shared;
}

const dnnl::stream& stream() {
  static const dnnl::stream shared(engine());
  return shared;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::desc row_major(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return {dims, dnnl::memory::data_type::f32, strides};
}

Runner::Runner(KernelRequest& request, dnnl::primitive primitive,
               const dnnl::memory::desc& scratchpad)
    : primitive_(std::move(primitive)) {
  request.need_workspace(scratchpad.get_size());
  bind(DNNL_ARG_SCRATCHPAD, scratchpad, {From::workspace, 0});
}

void Runner::bind_input(int argument, const dnnl::memory::desc& layout, int index) {
  bind(argument, layout, {From::input, index});
}

void Runner::bind_output(int argument, const dnnl::memory::desc& layout, int index) {
  bind(argument, layout, {From::output, index});
}

void Runner::bind(int argument, const dnnl::memory::desc& layout, Binding binding) {
  memories_.emplace_back(layout, engine(), nullptr);
  arguments_.push_back({argument, memories_.back().get()});
  bindings_.push_back(binding);
}

void Runner::run(const KernelArgs& args) const {
  for (std::size_t i = 0; i < bindings_.size(); ++i) {
    const Binding& binding = bindings_[i];
    void* const memory = binding.from == From::workspace ? args.workspace
                         : binding.from == From::output  ? args.outputs[binding.index]
                                                         : const_cast<void*>(
                                                              args.inputs[binding.index]);
    dnnl_memory_set_data_handle(arguments_[i].memory, memory);
  }
  // The C call, because dnnl::primitive::execute builds a new argument list each time.
  dnnl_primitive_execute(primitive_.get(), stream().get(), static_cast<int>(arguments_.size()),
                         arguments_.data());
}

Kernel kernel(Runner runner) {
  return [shared = std::make_shared<const Runner>(std::move(runner))](const KernelArgs& args) {
    shared->run(args);
  };
}

}  // namespace graft::onednn
