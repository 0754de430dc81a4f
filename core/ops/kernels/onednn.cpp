#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>

#include "core/base/held_signals.h"
#include "core/ops/kernels/onednn.h"

namespace graft {
namespace {

std::size_t round_up(std::size_t bytes) {
  return (bytes + Device::kAlignment - 1) / Device::kAlignment * Device::kAlignment;
}

dnnl::memory::data_type onednn_type(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// Whether its code may point the stack at scratch memory in the heap, where the frame of a
/// signal's handler would overwrite what lies before it: GEMM's does (oneDNN before 3.11.2,
/// adr/0082). "brgemm" does not, and has the word too: signals then wait for nothing.
bool moves_stack(std::string_view implementation) {
  return implementation.find("gemm") != std::string_view::npos;
}

/// Kernels call oneDNN's products without an engine too, so that onednn_engine() would be too late.
[[maybe_unused]] const bool kIsLimited = settle_onednn_isa();

}  // namespace

dnnl::engine& onednn_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& onednn_stream() {
  thread_local dnnl::stream stream(onednn_engine());  // plans may run on several threads
  return stream;
}

void* OnednnSlot::pointer(const KernelArgs& args) const {
  switch (kind) {
    case Kind::input:
      return const_cast<void*>(args.inputs[at]);  // oneDNN's handles are never const
    case Kind::output:
      return args.outputs[at];
    case Kind::constant:
      return const_cast<void*>(constant);
    case Kind::workspace:
      break;
  }
  return static_cast<std::byte*>(args.workspace) + at;
}

OnednnPrimitive::OnednnPrimitive(const dnnl::primitive_desc_base& desc)
    : primitive_(desc.get()), holds_signals_(moves_stack(desc.impl_info_str())) {}

void OnednnPrimitive::run(const std::vector<dnnl_exec_arg_t>& arguments) const {
  std::optional<HeldSignals> held;
  if (holds_signals_) held.emplace();
  // The C interface: dnnl::primitive::execute copies its map into a vector each time.
  dnnl_primitive_execute(primitive_.get(), onednn_stream().get(),
                         static_cast<int>(arguments.size()), arguments.data());
}

void onednn_sgemm(bool transposes_a, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                  const float* a, const float* b, float beta, float* c) {
  const HeldSignals held;  // its code is what moves_stack() speaks of
  dnnl_sgemm(transposes_a ? 'T' : 'N', 'N', m, n, k, alpha, a, transposes_a ? m : k, b, n, beta, c,
             n);
}

OnednnSlot OnednnProgram::scratch(std::size_t bytes) {
  const OnednnSlot slot{OnednnSlot::Kind::workspace, bytes_};
  bytes_ += round_up(bytes);
  return slot;
}

OnednnSlot OnednnProgram::constant(const Tensor& elements, const dnnl::memory::desc& from,
                                   const dnnl::memory::desc& to) {
  constants_.push_back(onednn_constant(elements, from, to));
  return {OnednnSlot::Kind::constant, 0, constants_.back()->bytes.data()};
}

void OnednnProgram::add(const dnnl::primitive_desc_base& desc,
                        const std::vector<OnednnOperand>& operands) {
  Step step{.primitive = OnednnPrimitive(desc), .bindings = {}, .arguments = {}};
  step.bindings.reserve(operands.size() + 1);
  step.arguments.reserve(operands.size() + 1);
  const auto bind = [&](int argument, const dnnl::memory::desc& memory_desc, OnednnSlot slot) {
    step.bindings.push_back({dnnl::memory(memory_desc, onednn_engine(), nullptr), slot});
    step.arguments.push_back({argument, step.bindings.back().memory.get()});
  };
  for (const OnednnOperand& operand : operands) bind(operand.argument, operand.desc, operand.slot);
  const dnnl::memory::desc scratchpad = desc.scratchpad_desc();
  if (scratchpad.get_size() != 0) {
    scratchpad_bytes_ = std::max(scratchpad_bytes_, scratchpad.get_size());
    // Lies behind everything else: finish() adds the offset.
    bind(DNNL_ARG_SCRATCHPAD, scratchpad, {OnednnSlot::Kind::workspace, 0});
  }
  steps_.push_back(std::move(step));
}

void OnednnProgram::add_reorder(const dnnl::memory::desc& from, OnednnSlot source,
                                const dnnl::memory::desc& to, OnednnSlot target) {
  const dnnl::reorder::primitive_desc desc(onednn_engine(), from, onednn_engine(), to,
                                           onednn_attributes());
  add(desc, {{DNNL_ARG_FROM, from, source}, {DNNL_ARG_TO, to, target}});
}

void OnednnProgram::run(const Step& step, const KernelArgs& args) {
  for (const Binding& binding : step.bindings) {
    dnnl_memory_set_data_handle(binding.memory.get(), binding.slot.pointer(args));
  }
  step.primitive.run(step.arguments);
}

Kernel OnednnProgram::finish(KernelRequest& request) {
  request.need_workspace(workspace_bytes());
  return finish();
}

Kernel OnednnProgram::finish() {
  for (Step& step : steps_) {
    for (std::size_t i = 0; i < step.arguments.size(); ++i) {
      if (step.arguments[i].arg == DNNL_ARG_SCRATCHPAD) step.bindings[i].slot.at = bytes_;
    }
  }
  const auto steps = std::make_shared<const std::vector<Step>>(std::move(steps_));
  return [steps, constants = std::move(constants_)](const KernelArgs& args) {
    for (const Step& step : *steps) run(step, args);
  };
}

bool is_onednn_type(DType dtype) {
  if (dtype == DType::f32) return true;
  constexpr auto kNeeded = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  static const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return dtype == DType::bf16 && (has & kNeeded) == kNeeded;
}

dnnl::memory::desc onednn_strided(const std::vector<std::int64_t>& dims,
                                  const std::vector<std::int64_t>& strides, DType dtype) {
  return {dims, onednn_type(dtype), strides};
}

dnnl::memory::desc onednn_image(const Shape& shape, Layout layout, DType dtype) {
  return onednn_strided(shape.dims(), layout_strides(shape, layout), dtype);
}

dnnl::memory::desc onednn_dense(const Shape& shape, DType dtype) {
  return onednn_strided(shape.dims(), shape.strides(), dtype);
}

dnnl::memory::desc onednn_any(const Shape& shape, DType dtype) {
  return {shape.dims(), onednn_type(dtype), dnnl::memory::format_tag::any};
}

bool is_same_layout(const dnnl::memory::desc& a, const dnnl::memory::desc& b) {
  if (a == b) return true;
  const auto is_plain = [](const dnnl::memory::desc& desc) {
    return desc.get_format_kind() == dnnl::memory::format_kind::blocked &&
           desc.get_inner_nblks() == 0;
  };
  if (!is_plain(a) || !is_plain(b) || a.get_dims() != b.get_dims()) return false;
  if (a.get_size() != b.get_size()) return false;
  const dnnl::memory::dims dims = a.get_dims();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1 && a.get_strides()[i] != b.get_strides()[i]) return false;
  }
  return true;
}

dnnl::primitive_attr onednn_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace graft
