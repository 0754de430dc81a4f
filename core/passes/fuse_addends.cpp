// Walked by hand: that the sum is one of a gradient is the smaller part. Whether both are joined is
// up to the kernel that would run them, and then nodes move.
#include <algorithm>
#include <cassert>

#include "core/graph/number_table.h"
#include "core/ops/alias.h"
#include "core/ops/kernel.h"
#include "core/ops/op_def.h"
#include "core/passes/match.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

constexpr int kAddend = 2;

bool is_gradient(const Node& node) {
  return node.is("ConvInputGrad", kInternalDomain);
}

/// A sum, and the gradient that takes in the other operand.
struct AddedGradient {
  Node* sum;
  Node* gradient;
  Value* addend;
};

class Fuser {
 public:
  Fuser(Graph& graph, Device& device) : graph_(graph), device_(device), position_(graph, -1) {
    int position = 0;
    for (const auto& node : graph.nodes()) {
      position_[*node] = position++;
      if (node->is("Add")) sums_.push_back(node.get());
    }
  }

  bool run() {
    bool changed = false;
    for (Node* const sum : sums_) {
      const std::optional<AddedGradient> found = match(*sum);
      changed |= found && fuse(*found);
    }
    return changed;
  }

 private:
  /// Of two gradients the later one, since the other is there when it runs.
  std::optional<AddedGradient> match(Node& sum) const {
    std::optional<AddedGradient> found;
    for (const int index : {0, 1}) {
      Node* const node = sum.input(index)->producer();
      Value* const addend = sum.input(1 - index);
      const bool fits = node != nullptr && is_gradient(*node) && node->input_count() == kAddend &&
                        only_reader(node->output()) == &sum &&
                        have_one_shape(node->output(), addend) &&
                        node->output()->layout == addend->layout;
      const bool is_later = fits && (!found || position(node) > position(found->gradient));
      if (is_later) found = {&sum, node, addend};
    }
    return found;
  }

  /// False where another kernel, or none, would run the fused node.
  bool fuse(const AddedGradient& match) {
    Value* const sum = match.sum->output();
    std::vector<Value*> inputs = match.gradient->copy_inputs();
    inputs.push_back(match.addend);
    Node* const fused =
        graph_.add_node(match.gradient->op_type(), match.gradient->domain(), inputs,
                        {graph_.unique_name(sum->name())}, match.gradient->attributes, match.sum);
    fused->output()->set_type(sum->type());
    fused->output()->layout = sum->layout;
    if (find_kernel(*fused, device_).name != find_kernel(*match.gradient, device_).name) {
      graph_.remove(fused);
      return false;
    }
    position_[*fused] = position(match.sum);
    const std::string name = sum->name();
    graph_.replace_all_uses(sum, fused->output());
    graph_.remove(match.sum);
    graph_.remove(match.gradient);
    graph_.rename(fused->output(), name);
    if (Node* const producer = match.addend->producer(); may_wait(producer, *fused)) {
      graph_.move(producer, fused);
      position_[*producer] = position(fused);
    }
    return true;
  }

  /// Whether what makes the addend may run right before it is read, and less memory is held
  /// meanwhile: what it reads is smaller than what it makes. Gradients of variables that it reads
  /// wait as well.
  bool may_wait(const Node* producer, const Node& reader) const {
    if (producer == nullptr || producer->output_count() > 1 ||
        only_reader(producer->output()) != &reader || updates_state(*producer)) {
      return false;
    }
    std::size_t held = 0;
    for (const Value* input : producer->inputs()) {
      if (input == nullptr) continue;
      const Value* const root = origin(input);
      for (const Use& use : root->uses()) {
        if (updates_state(*use.node) && position(use.node) < position(&reader)) return false;
      }
      if (root->is_variable || is_over(*input, reader)) held += input->bytes();
    }
    return held < producer->output()->bytes();
  }

  /// Whether the value was made in the step and no one reads it as late as that.
  bool is_over(const Value& value, const Node& reader) const {
    return value.producer() != nullptr && !value.is_graph_output() &&
           std::ranges::all_of(value.uses(), [&](const Use& use) {
             return position(use.node) < position(&reader);
           });
  }

  int position(const Node* node) const {
    assert(position_[*node] >= 0);
    return position_[*node];
  }

  Graph& graph_;
  Device& device_;
  NodeTable<int> position_;
  std::vector<Node*> sums_;
};

}  // namespace

bool fuse_addends(Graph& graph, Device& device) {
  const auto may_add = [](const auto& node) { return is_gradient(*node); };
  return std::ranges::any_of(graph.nodes(), may_add) && Fuser(graph, device).run();
}

}  // namespace graft::passes
