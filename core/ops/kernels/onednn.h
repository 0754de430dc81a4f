#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/ops/kernel.h"

namespace graft {

/// The CPU engine and stream that all kernels share.
dnnl::engine& onednn_engine();
dnnl::stream& onednn_stream();

/// Keeps oneDNN to the instructions that GRAFT_ISA names, and from those that this machine claims
/// and does not run (it would die of SIGILL), unless the environment names oneDNN's own
/// (ONEDNN_MAX_CPU_ISA). Whether it did.
bool settle_onednn_isa() noexcept;

/// Whether oneDNN takes axes of these sizes: from 2^32 elements along one it divides by zero.
template <class Sizes>
bool fits_onednn(const Sizes& sizes) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return std::ranges::all_of(sizes, [](std::int64_t size) { return size <= kMost; });
}

/// Where an operand lies in a call: an input, an output, some bytes of the workspace, or memory
/// that was filled before the run.
struct OnednnSlot {
  enum class Kind { input, output, workspace, constant };
  Kind kind;
  /// Index of the input or output; offset in bytes.
  std::size_t at = 0;
  /// The address of a constant.
  const void* constant = nullptr;

  void* pointer(const KernelArgs& args) const;
};

inline OnednnSlot onednn_input(int index) {
  return {OnednnSlot::Kind::input, static_cast<std::size_t>(index)};
}
inline OnednnSlot onednn_output(int index = 0) {
  return {OnednnSlot::Kind::output, static_cast<std::size_t>(index)};
}

/// What a tensor holds, in a layout of oneDNN's own choice.
struct OnednnConstant {
  dnnl::memory::desc layout;
  Tensor bytes;
};

/// What the tensor holds now, in that layout. While somebody holds it, the next who asks gets the
/// same, unless the tensor changed.
std::shared_ptr<const OnednnConstant> onednn_constant(const Tensor& elements,
                                                      const dnnl::memory::desc& from,
                                                      const dnnl::memory::desc& to);

/// A primitive, run in the stream of the calling thread.
class OnednnPrimitive {
 public:
  explicit OnednnPrimitive(const dnnl::primitive_desc_base& desc);
  void run(const std::vector<dnnl_exec_arg_t>& arguments) const;

 private:
  dnnl::primitive primitive_;
  bool holds_signals_;
};

/// c = alpha a b + beta c, of dense matrices: a [m, k], or [k, m] where it is transposed, b [k, n].
void onednn_sgemm(bool transposes_a, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                  const float* a, const float* b, float beta, float* c);

/// One argument of a primitive: DNNL_ARG_..., how its memory is laid out, where it lies.
struct OnednnOperand {
  int argument;
  dnnl::memory::desc desc;
  OnednnSlot slot;
};

/// Primitives that run one after another, prepared once. A run binds pointers and executes; it
/// allocates nothing itself (oneDNN builds a small map inside of each execute). A program belongs
/// to one plan: two threads must not run it at a time.
class OnednnProgram {
 public:
  /// Reserves workspace for one value.
  OnednnSlot scratch(const dnnl::memory::desc& desc) { return scratch(desc.get_size()); }
  OnednnSlot scratch(std::size_t bytes);

  /// `elements` brought from one layout into another now, rather than in each run. Programs that
  /// want the same of one tensor share it.
  OnednnSlot constant(const Tensor& elements, const dnnl::memory::desc& from,
                      const dnnl::memory::desc& to);

  /// Appends a primitive whose descriptor was made with scratchpad_mode::user. All scratchpads
  /// share one piece of the workspace.
  void add(const dnnl::primitive_desc_base& desc, const std::vector<OnednnOperand>& operands);
  /// Appends a copy into another layout.
  void add_reorder(const dnnl::memory::desc& from, OnednnSlot source, const dnnl::memory::desc& to,
                   OnednnSlot target);
  std::size_t workspace_bytes() const { return bytes_ + scratchpad_bytes_; }
  /// Tells the request how much workspace is needed and returns the kernel.
  Kernel finish(KernelRequest& request);
  /// The same for a request that has been told.
  Kernel finish();

 private:
  struct Binding {
    dnnl::memory memory;
    OnednnSlot slot;
  };
  struct Step {
    OnednnPrimitive primitive;
    std::vector<Binding> bindings;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  static void run(const Step& step, const KernelArgs& args);

  std::vector<Step> steps_;
  std::vector<std::shared_ptr<const OnednnConstant>> constants_;
  std::size_t bytes_ = 0;
  std::size_t scratchpad_bytes_ = 0;
};

/// f32; bf16 where the processor multiplies it.
bool is_onednn_type(DType dtype);
/// A value [N, C, spatial...] in that layout, and a dense row-major one. Of an is_onednn_type.
dnnl::memory::desc onednn_image(const Shape& shape, Layout layout, DType dtype = DType::f32);
dnnl::memory::desc onednn_dense(const Shape& shape, DType dtype = DType::f32);
/// With these steps between elements along each axis.
dnnl::memory::desc onednn_strided(const std::vector<std::int64_t>& dims,
                                  const std::vector<std::int64_t>& strides, DType dtype);
/// A descriptor that leaves the layout to the primitive.
dnnl::memory::desc onednn_any(const Shape& shape, DType dtype = DType::f32);
/// Both describe the same bytes: equal up to the strides of axes of size 1.
bool is_same_layout(const dnnl::memory::desc& a, const dnnl::memory::desc& b);
/// With the scratchpad given by the caller.
dnnl::primitive_attr onednn_attributes();

}  // namespace graft
