// Walked by hand: what is looked for is any element-wise node, and the later of several
// convolutions that it may read.
#include <algorithm>

#include "core/ops/chain_limits.h"
#include "core/ops/infer.h"
#include "core/passes/chain_internal.h"
#include "core/passes/match.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

bool is_chain(const Node& node) {
  return node.is("ElementwiseChain", kInternalDomain);
}

/// A convolution whose weight is known before the run and whose result is large, and read by
/// `reader` alone.
bool may_hold(const Node* node, const Node& reader) {
  return node != nullptr && node->is("Conv") && constant_of(node->input(1)).defined() &&
         node->output()->bytes() > kSmallConvBytes && only_reader(node->output()) == &reader;
}

class Fuser {
 public:
  Fuser(Graph& graph, Device& device) : graph_(graph), device_(device) {
    for (const auto& node : graph.nodes()) {
      position_[node.get()] = static_cast<int>(nodes_.size());
      nodes_.push_back(node.get());
    }
  }

  bool run() {
    bool changed = false;
    for (Node* const node : nodes_) {
      Node* const conv = last_convolution(*node);
      if (conv == nullptr || !fits(*node, *conv->output())) continue;
      fuse(*conv, is_chain(*node) ? *node : *as_chain(*node));
      changed = true;
    }
    return changed;
  }

 private:
  /// Of those whose result the node alone reads: what the others make is there when it runs.
  Node* last_convolution(const Node& node) const {
    Node* last = nullptr;
    for (const Value* input : node.inputs()) {
      Node* const made_by = input == nullptr ? nullptr : input->producer();
      if (!may_hold(made_by, node)) continue;
      if (last == nullptr || position_.at(made_by) > position_.at(last)) last = made_by;
    }
    return last;
  }

  /// Whether the node is element-wise, has one result, like that of the convolution, and reads
  /// nothing but values like it and single elements.
  bool fits(const Node& node, const Value& conv) const {
    if (node.output_count() != 1 || !(is_chain(node) || is_link(node, device_))) return false;
    const Value& result = *node.output();
    const auto is_like_result = [&](const Value& value) {
      return value.dtype() == result.dtype() && value.known_shape() == result.known_shape() &&
             value.layout == result.layout;
    };
    return (conv.dtype() == DType::f32 || conv.dtype() == DType::f64) && is_like_result(conv) &&
           std::ranges::count(node.inputs(), &conv) == 1 &&
           node.input_count() <= kMostChainInputs &&
           std::ranges::all_of(node.inputs(), [&](const Value* input) {
             return input == nullptr || is_like_result(*input) ||
                    (input->dtype() == result.dtype() && input->known_shape().size() == 1);
           });
  }

  /// A chain of that one link in its place.
  Node* as_chain(Node& node) {
    const Links links{&node};
    const std::vector<Value*> results = results_of(links);
    Node* const chain = add_chain(graph_,
                                  {.op = "ElementwiseChain",
                                   .links = links,
                                   .inputs = operands_of(links),
                                   .results = results,
                                   .replaced = results},
                                  &node);
    graph_.remove(&node);
    return chain;
  }

  void fuse(Node& conv, Node& chain) {
    Value* const result = chain.output();
    std::vector<Value*> inputs = conv.inputs();
    inputs.resize(3, nullptr);
    std::int64_t place = 0;
    for (int i = 0; i < chain.input_count(); ++i) {
      if (chain.input(i) == conv.output()) {
        place = i;
      } else {
        inputs.push_back(chain.input(i));
      }
    }
    Attributes attributes = conv.attributes;
    attributes.set(*chain.attributes.find("body"));
    attributes.set({"result", place});
    const std::string name = result->name();
    Node* const fused = graph_.add_node("ConvChain", kInternalDomain, inputs,
                                        {graph_.unique_name(name)}, std::move(attributes), &chain);
    fused->output()->set_type(result->type());
    fused->output()->layout = result->layout;
    graph_.replace_all_uses(result, fused->output());
    graph_.remove(&chain);
    graph_.remove(&conv);
    graph_.rename(fused->output(), name);
  }

  Graph& graph_;
  Device& device_;
  std::vector<Node*> nodes_;
  PointerMap<Node, int> position_;
};

}  // namespace

bool fuse_conv_chains(Graph& graph, Device& device) {
  return Fuser(graph, device).run();
}

}  // namespace graft::passes
