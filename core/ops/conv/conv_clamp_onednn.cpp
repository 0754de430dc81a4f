#include <algorithm>
#include <memory>
#include <string_view>

#include "core/base/error.h"
#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/conv/conv_call_onednn.h"
#include "core/ops/conv/conv_clamp.h"
#include "core/ops/kernels/openmp_calls.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void clamp_all(std::int64_t count, const ConvClamp& clamp, float* y) {
  parallel_for(count, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
#pragma omp simd
    for (std::int64_t i = first; i < last; ++i) y[i] = clamp(y[i]);
  });
}

/// A convolution that clamps its results while they are in registers. There oneDNN takes a NaN for
/// the bound: a run that meets one is made again without that, by a primitive which is made then,
/// as few programs ever need it and each takes a plan a tenth of a millisecond.
class ConvInBounds {
 public:
  using Desc = dnnl::convolution_forward::primitive_desc;

  ConvInBounds(KernelRequest& request, const ConvCall& call, const ConvClamp& clamp,
               const Desc& clamping, const Desc& bare)
      : call_(call), clamp_(clamp), bare_desc_(bare) {
    OnednnProgram program = call.program(clamping);
    const std::size_t scratch = clamping.scratchpad_desc().get_size();
    request.need_workspace(program.workspace_bytes() - scratch +
                           std::max(scratch, bare.scratchpad_desc().get_size()));
    clamping_ = program.finish();
  }

  void operator()(const KernelArgs& args) {
    const InvalidFlagWatch watch;
    clamping_(args);
    if (!watch.met_nan()) return;
    if (!bare_) make_bare();
    bare_(args);
    clamp_all(call_.problem.y.size(), clamp_, args.output<float>());
  }

 private:
  void make_bare() {
    try {
      bare_ = call_.program(bare_desc_).finish();
    } catch (const dnnl::error& error) {
      fail(ErrorKind::memory, "no memory for a convolution that meets a NaN: ", error.what());
    }
  }

  ConvCall call_;
  ConvClamp clamp_;
  Desc bare_desc_;
  Kernel clamping_;
  Kernel bare_;
};

/// Where the clamp would take another primitive, or one whose NaN nobody sees, it goes over memory.
Kernel clamped_conv(KernelRequest& request) {
  const ConvClamp clamp(request.attributes());
  const ConvCall call(request);
  if (request.dtype() != DType::f32 || !call.problem.is_supported()) return {};
  if (InvalidFlagWatch::is_possible() && call.weight.defined()) {
    dnnl::post_ops after;
    after.append_eltwise(dnnl::algorithm::eltwise_clip, clamp.lower, clamp.upper);
    dnnl::primitive_attr attributes = onednn_attributes();
    attributes.set_post_ops(after);
    const auto bare = call.problem.forward(call.has_bias);
    const auto clamping = call.problem.forward(call.has_bias, attributes);
    if (std::string_view(bare.impl_info_str()) == clamping.impl_info_str()) {
      const auto kernel = std::make_shared<ConvInBounds>(request, call, clamp, clamping, bare);
      return [kernel](const KernelArgs& args) { (*kernel)(args); };
    }
  }
  Kernel conv = make_conv_onednn(request);
  if (!conv) return {};
  return [conv, clamp, count = call.problem.y.size()](const KernelArgs& args) {
    conv(args);
    clamp_all(count, clamp, args.output<float>());
  };
}

}  // namespace

void register_conv_clamp_onednn(KernelRegistry& registry) {
  registry.add({.op = "ConvClamp",
                .domain = kInternalDomain,
                .name = "onednn",
                .make = unless_refused<clamped_conv>,
                .knows_layouts = true});
}

}  // namespace graft
