#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "core/ops/kernel.h"

namespace graft::onednn {

/// The CPU engine and its stream; all primitives share them.
const dnnl::engine& engine();
const dnnl::stream& stream();

/// Attributes that make a primitive take its scratch memory from the caller.
dnnl::primitive_attr user_scratchpad();

/// Row-major f32 memory of these dims.
dnnl::memory::desc row_major(const std::vector<std::int64_t>& dims);

/// A primitive and the memory objects it runs on, bound to a kernel's inputs and outputs by index.
class Runner {
 public:
  /// Asks `request` for the scratch memory that the primitive wants.
  Runner(KernelRequest& request, dnnl::primitive primitive, const dnnl::memory::desc& scratchpad);

  void bind_input(int argument, const dnnl::memory::desc& layout, int index);
  void bind_output(int argument, const dnnl::memory::desc& layout, int index = 0);

  /// Neither allocates nor throws. One call at a time.
  void run(const KernelArgs& args) const;

 private:
  enum class From { input, output, workspace };
  struct Binding {
    From from;
    int index;
  };
  void bind(int argument, const dnnl::memory::desc& layout, Binding binding);

  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<Binding> bindings_;
};

/// The kernel that runs it.
Kernel kernel(Runner runner);

}  // namespace graft::onednn
