#include "core/passes/chain_internal.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "core/graph/same.h"
#include "core/ops/chain_limits.h"
#include "core/ops/infer.h"
#include "core/ops/kernel.h"
#include "core/ops/registry.h"

namespace graft::passes {
namespace {

/// A constant of one element: part of the body.
bool is_scalar_constant(const Value* value) {
  return value != nullptr && value->is_initializer() && !value->is_variable &&
         value->initializer().size() == 1;
}

/// How many elements in a row of the result take as many of the operand, or just one.
std::int64_t run_length(const Value& operand, const Value& result) {
  Shape whole = result.known_shape();
  Shape part = with_leading_ones(operand.known_shape(), whole.rank());
  if (result.layout == Layout::channels_last) {
    whole = channels_last_shape(whole);
    part = channels_last_shape(part);
  }
  std::int64_t length = 1;
  std::optional<bool> is_still;
  for (int axis = whole.rank() - 1; axis >= 0; --axis) {
    if (whole[axis] == 1) continue;
    if (is_still && *is_still != (part[axis] == 1)) break;
    is_still = part[axis] == 1;
    length *= whole[axis];
  }
  return length;
}

/// A chain begins anew with each run: with short ones, single ops are faster.
bool has_long_runs(const Value& operand, const Value& result) {
  constexpr std::int64_t kShort = 256;
  constexpr std::int64_t kFew = 4096;
  return result.known_shape().size() <= kFew || run_length(operand, result) >= kShort;
}

void add_to_body(Graph& body, const Node& link, ValueMap& inside) {
  std::vector<Value*> inputs;
  for (const Value* input : link.inputs()) {
    if (input != nullptr && !inside.contains(input)) {
      inside[input] = body.add_initializer(input->name(), input->initializer());
    }
    inputs.push_back(input == nullptr ? nullptr : inside.at(input));
  }
  const Value* const result = link.output(0);
  const Node* const copy =
      body.add_node(link.op_type(), link.domain(), inputs, {result->name()}, link.attributes);
  inside[result] = copy->output(0);
}

}  // namespace

bool contains(const Links& links, const Node* node) {
  return std::ranges::find(links, node) != links.end();
}

namespace {

/// Kernels of other ops are not made for it: that may take long.
bool runs_in_device_chains(const Node& node, Device& device) {
  const auto kernels =
      KernelRegistry::instance().find(device.kind(), node.op_type(), node.domain());
  const auto is_chains = [](const KernelDef& def) { return def.name == kDeviceChainKernel; };
  return std::ranges::any_of(kernels, is_chains) &&
         find_kernel(node, device).name == kDeviceChainKernel;
}

}  // namespace

bool is_link(const Node& node, Device& device) {
  const Value* const result = node.output(0);
  if (node.output_count() != 1 || result == nullptr || node.input_count() == 0 ||
      node.input_count() > kMostLinkInputs) {
    return false;
  }
  return device.kind() == DeviceKind::cpu ? static_cast<bool>(find_run_function(node, device))
                                          : runs_in_device_chains(node, device);
}

std::vector<Value*> operands_of(const Links& links) {
  std::vector<Value*> operands;
  for (const Node* link : links) {
    for (Value* input : link->inputs()) {
      if (input == nullptr || is_scalar_constant(input) || contains(links, input->producer()) ||
          std::ranges::find(operands, input) != operands.end()) {
        continue;
      }
      operands.push_back(input);
    }
  }
  return operands;
}

std::vector<Value*> results_of(const Links& links) {
  std::vector<Value*> results;
  for (const Node* link : links) {
    Value* const result = link->output(0);
    const bool is_read = std::ranges::any_of(
        result->uses(), [&](const Use& use) { return !contains(links, use.node); });
    if (is_read || result->is_graph_output()) results.push_back(result);
  }
  return results;
}

namespace {

/// A card holds a chain's values in registers, so there are few; how long its operands' runs are is
/// all the same to it.
bool fits_device(const Links& links, std::size_t inputs) {
  std::vector<const Value*> constants;
  bool has_clip = false;
  for (const Node* link : links) {
    has_clip = has_clip || link->is("Clip");
    for (const Value* input : link->inputs()) {
      const bool is_new = std::ranges::find(constants, input) == constants.end();
      if (input != nullptr && is_new && is_scalar_constant(input)) constants.push_back(input);
    }
  }
  const std::size_t operands = inputs + constants.size();
  return operands <= kMostDeviceChainOperands &&
         operands + (has_clip ? 2 : 0) + links.size() <= kMostDeviceChainValues &&
         links.back()->output(0)->known_shape().rank() <= kMostDeviceChainAxes;
}

}  // namespace

bool fits_chain(const Links& links, const std::vector<Value*>& inputs,
                const std::vector<Value*>& results, const Device& device) {
  std::size_t values = links.size();
  for (const Node* link : links) values += link->inputs().size();
  const auto is_long = [&](const Value* input) {
    return has_long_runs(*input, *links.back()->output(0));
  };
  if (values > kMostChainValues || inputs.size() > kMostChainInputs || results.empty() ||
      results.size() > kMostChainInputs) {
    return false;
  }
  return device.kind() == DeviceKind::cpu ? std::ranges::all_of(inputs, is_long)
                                          : fits_device(links, inputs.size());
}

namespace {

std::shared_ptr<Graph> make_body(Graph& graph, const NewChain& chain) {
  auto body = std::make_shared<Graph>("chain", &graph);
  ValueMap inside;
  for (const Value* input : chain.inputs) inside[input] = body->add_input(input->name(), {});
  for (const Node* link : chain.links) add_to_body(*body, *link, inside);
  for (const Value* result : chain.results) body->add_output(inside.at(result));
  return body;
}

std::size_t hash_of_ops(const Links& links) {
  constexpr std::size_t kFactor = 31;
  std::size_t hash = links.size();
  for (const Node* link : links) {
    hash = kFactor * hash + std::hash<const OpName*>()(&link->op());  // of one graph
  }
  return hash;
}

}  // namespace

std::shared_ptr<Graph> ChainMaker::body_of(const NewChain& chain) {
  constexpr std::ptrdiff_t kMostOfOneHash = 8;  // they may differ by an attribute each
  std::shared_ptr<Graph> body = make_body(graph_, chain);
  const std::size_t hash = hash_of_ops(chain.links);
  const auto [first, last] = bodies_.equal_range(hash);
  const auto known =
      std::find_if(first, last, [&](const auto& one) { return are_same(*one.second, *body); });
  if (known != last) return known->second;
  if (std::distance(first, last) < kMostOfOneHash) bodies_.emplace(hash, body);
  return body;
}

Node* ChainMaker::add(const NewChain& chain, Node* before) {
  const std::shared_ptr<Graph> body = body_of(chain);
  std::vector<std::string> names;
  for (Value* const replaced : chain.replaced) {
    names.push_back(replaced->name());
    graph_.rename(replaced, graph_.unique_name(names.back() + "/replaced"));
  }
  Node* const node =
      graph_.add_node(chain.op, kInternalDomain, chain.inputs, names, {{"body", body}}, before);
  for (std::size_t i = 0; i < chain.replaced.size(); ++i) {
    Value* const replaced = chain.replaced[i];
    Value* const output = node->output(static_cast<int>(i));
    output->set_type(replaced->type());
    output->layout = replaced->layout;
    graph_.replace_all_uses(replaced, output);
  }
  return node;
}

}  // namespace graft::passes
