// The convolution by the kernel that it would have alone, then the chain over all of its result:
// where that is small, or no kernel takes the convolution by stripes (conv_chain_onednn.cpp).
#include <algorithm>
#include <array>

#include "core/ops/chain_limits.h"
#include "core/ops/conv/conv_chain.h"
#include "core/ops/infer.h"
#include "core/ops/registry.h"

namespace graft {
namespace conv_chain {

ConvSpec whole_convolution(const KernelRequest& request) {
  return {request.input(kX), request.input(kW), request.output(), request.constant(kW),
          conv_attributes(request.node())};
}

Alone convolution_alone(const ConvSpec& spec, bool has_bias) {
  auto graph = std::make_unique<Graph>("convolution");
  const auto add = [&](std::string_view name, const TensorSpec& operand) {
    Value* const value = graph->add_input(name, {operand.dtype, SymShape(operand.shape)});
    value->layout = operand.layout;
    return value;
  };
  std::vector<Value*> inputs{add("x", spec.x)};
  inputs.push_back(spec.known_w.defined() ? graph->add_initializer("w", spec.known_w)
                                          : add("w", spec.w));
  if (has_bias) inputs.push_back(add("bias", {spec.y.dtype, Shape{spec.y.shape[1]}}));
  Node* const node = graph->add_node("Conv", "", inputs, {"y"}, spec.attributes);
  node->output()->set_type({spec.y.dtype, SymShape(spec.y.shape)});
  node->output()->layout = spec.y.layout;
  return {std::move(graph), node};
}

namespace {

/// Of operands that lie in a row; those of one element serve all.
Alone chain_alone(const KernelRequest& request, std::int64_t count) {
  const std::shared_ptr<Graph>& body = body_of(request.node());
  const int place = place_of_result(request.node());
  auto graph = std::make_unique<Graph>("chain");
  std::vector<Value*> inputs;
  int operand = kFirstOperand;
  for (int i = 0; i < static_cast<int>(body->inputs().size()); ++i) {
    const bool is_row = i == place || request.shape(operand) == request.output().shape;
    if (i != place) ++operand;
    const Shape shape = is_row ? Shape{count} : Shape{};
    inputs.push_back(graph->add_input(text("x", i), {request.output().dtype, SymShape(shape)}));
  }
  Node* const node =
      graph->add_node("ElementwiseChain", kInternalDomain, inputs, {"y"}, {{"body", body}});
  infer(*node);
  return {std::move(graph), node};
}

}  // namespace

ChainPart::ChainPart(const KernelRequest& request, std::int64_t count)
    : place_(static_cast<std::size_t>(place_of_result(request.node()))),
      width_(bytes_of(request.output().dtype, 1)) {
  const Alone chain = chain_alone(request, count);
  for (const Value* input : chain.node->inputs()) {
    advance_.push_back(input->known_shape().rank() == 0 ? 0 : width_);
  }
  kernel_ = find_kernel(*chain.node, request.device()).run;
}

void ChainPart::run(const KernelArgs& args, std::int64_t first) const {
  std::array<const void*, kMostChainInputs> inputs;
  const auto at = static_cast<std::size_t>(first);
  auto* const y = args.output<std::byte>() + at * width_;
  std::size_t operand = kFirstOperand;
  for (std::size_t i = 0; i < advance_.size(); ++i) {
    inputs[i] =
        i == place_ ? y : static_cast<const std::byte*>(args.inputs[operand++]) + at * advance_[i];
  }
  void* const outputs[] = {y};
  kernel_({{inputs.data(), advance_.size()}, outputs, nullptr, args.run});
}

}  // namespace conv_chain

namespace {

/// Also where an operand lies in another order than the result: the chain would take the wrong
/// elements.
bool lies_like_result(const KernelRequest& request, int operand) {
  const TensorSpec& one = request.input(operand);
  return one.shape.size() == 1 || one.layout == request.output().layout ||
         is_layout_neutral(one.shape);
}

Kernel make_whole(KernelRequest& request) {
  using namespace conv_chain;
  for (int i = kFirstOperand; i < request.input_count(); ++i) {
    if (!lies_like_result(request, i)) return {};
  }
  const ConvSpec spec = whole_convolution(request);
  const Alone convolution = convolution_alone(spec, request.has_input(kBias));
  PreparedKernel conv = find_kernel(*convolution.node, request.device());
  const ChainPart chain(request, request.output().shape.size());
  if (!conv.run || !chain) return {};
  request.need_workspace(conv.workspace_bytes);
  return [run = std::move(conv.run), chain](const KernelArgs& args) {
    run({args.inputs.first(std::min<std::size_t>(args.inputs.size(), kFirstOperand)), args.outputs,
         args.workspace, args.run});
    chain.run(args, 0);
  };
}

}  // namespace

void register_conv_chain_cpu(KernelRegistry& registry) {
  registry.add({.op = "ConvChain",
                .domain = kInternalDomain,
                .name = "whole",
                .make = make_whole,
                .knows_layouts = true});
}

}  // namespace graft
