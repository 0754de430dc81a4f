#pragma once

#include <vector>

#include "core/ops/conv/conv_problem_onednn.h"

namespace graft {

/// An operand of the primitive that is read: copied to the wanted layout first if need be.
inline OnednnOperand read(OnednnProgram& program, int argument, const dnnl::memory::desc& wanted,
                          const dnnl::memory::desc& given, OnednnSlot slot) {
  if (is_same_layout(wanted, given)) return {argument, wanted, slot};
  const OnednnSlot copy = program.scratch(wanted);
  program.add_reorder(given, slot, wanted, copy);
  return {argument, wanted, copy};
}

/// A weight: where it is known before the run, it is copied then.
inline OnednnOperand read_weight(OnednnProgram& program, const Tensor& known,
                                 const dnnl::memory::desc& wanted,
                                 const dnnl::memory::desc& given) {
  if (!known.defined() || is_same_layout(wanted, given)) {
    return read(program, DNNL_ARG_WEIGHTS, wanted, given, onednn_input(1));
  }
  return {DNNL_ARG_WEIGHTS, wanted, program.constant(known, given, wanted)};
}

/// An operand that is written; `finish` copies it to where it belongs.
class Written {
 public:
  Written(OnednnProgram& program, const dnnl::memory::desc& made, const dnnl::memory::desc& wanted,
          OnednnSlot slot)
      : made_(made), wanted_(wanted), target_(slot), slot_(slot) {
    if (!is_same_layout(made, wanted)) slot_ = program.scratch(made);
  }
  OnednnOperand operand(int argument) const { return {argument, made_, slot_}; }
  void finish(OnednnProgram& program) const {
    if (!is_same_layout(made_, wanted_)) program.add_reorder(made_, slot_, wanted_, target_);
  }

 private:
  dnnl::memory::desc made_;
  dnnl::memory::desc wanted_;
  OnednnSlot target_;
  OnednnSlot slot_;
};

/// y = x w + bias, of which all but the primitive is settled.
struct ConvCall {
  explicit ConvCall(const KernelRequest& request)
      : problem(problem_of(request, request.shape(0), request.shape(1), request.output().shape)),
        x(request.layout(0)),
        y(request.output().layout),
        weight(request.constant(1)),
        has_bias(request.has_input(2)) {}

  OnednnProgram program(const dnnl::convolution_forward::primitive_desc& desc) const {
    OnednnProgram result;
    std::vector<OnednnOperand> operands{
        read(result, DNNL_ARG_SRC, desc.src_desc(), problem.image(problem.x, x), onednn_input(0)),
        read_weight(result, weight, desc.weights_desc(), problem.dense(problem.w))};
    if (has_bias) operands.push_back({DNNL_ARG_BIAS, desc.bias_desc(), onednn_input(2)});
    const Written written(result, desc.dst_desc(), problem.image(problem.y, y), onednn_output());
    operands.push_back(written.operand(DNNL_ARG_DST));
    result.add(desc, operands);
    written.finish(result);
    return result;
  }

  ConvProblem problem;
  Layout x;
  Layout y;
  Tensor weight;  ///< undefined where it is not known before the run
  bool has_bias;
};

/// By the primitive, or as a product where that is faster. Empty for what oneDNN does not take.
Kernel make_conv_onednn(KernelRequest& request);

/// oneDNN refuses with an exception; a refusal here means that the next candidate is asked.
template <Kernel (*make)(KernelRequest&)>
Kernel unless_refused(KernelRequest& request) {
  for (const Shape* shape : {&request.shape(0), &request.shape(1), &request.output().shape}) {
    if (!fits_onednn(*shape)) return {};
  }
  try {
    return make(request);
  } catch (const dnnl::error&) {
    request.need_workspace(0);
    return {};
  }
}

}  // namespace graft
