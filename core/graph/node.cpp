#include "core/graph/node.h"

#include "core/graph/graph.h"

namespace graft {

Node::Node(Graph* graph, const OpName& op)
    : graph_(graph),
      op_(&op),
      number_(graph->numbered_nodes_++),
      inputs_(graph->memory_),
      outputs_(graph->memory_),
      use_places_(graph->memory_) {}

void Node::operator delete(Node* node, std::destroying_delete_t) {
  Pool& memory = node->graph_->memory_;
  node->~Node();
  memory.deallocate(node, sizeof(Node));
}

void Node::set_input(int index, Value* value) {
  const auto at = static_cast<std::size_t>(index);
  if (at >= inputs_.size()) {
    use_places_.resize(at + 1);
    inputs_.resize(at + 1, nullptr);
  }
  if (inputs_[at] != nullptr) inputs_[at]->drop_use(use_places_[at]);
  inputs_[at] = nullptr;  // so it stays when there is no memory for the use
  if (value != nullptr) {
    value->add_use({this, index});
    graph_->note_read(*value);
  }
  inputs_[at] = value;
}

void Node::trim_inputs() {
  while (!inputs_.empty() && inputs_.back() == nullptr) inputs_.pop_back();
  use_places_.resize(inputs_.size());
}

std::string Node::label() const {
  if (!name_.empty()) return op_type() + " node '" + name_ + "'";
  for (const auto& output : outputs_) {
    if (output) return op_type() + " node producing '" + output->name() + "'";
  }
  return op_type() + " node";
}

}  // namespace graft
