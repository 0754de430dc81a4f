#include "core/graph/node.h"

#include <algorithm>
#include <iterator>

#include "core/graph/graph.h"

namespace graft {

Value* Node::input(int index) const {
  return index < input_count() ? inputs_[static_cast<std::size_t>(index)] : nullptr;
}

Value* Node::output(int index) const {
  return index < output_count() ? outputs_[static_cast<std::size_t>(index)].get() : nullptr;
}

void Node::set_input(int index, Value* value) {
  const auto at = static_cast<std::size_t>(index);
  if (at >= inputs_.size()) inputs_.resize(at + 1, nullptr);
  if (Value* const old = inputs_[at]) {
    // From the back: graphs are taken down last node first, which makes each search short.
    const auto use = std::find(old->uses_.rbegin(), old->uses_.rend(), Use{this, index});
    old->uses_.erase(std::next(use).base());
  }
  inputs_[at] = value;
  if (value != nullptr) value->uses_.push_back({this, index});
}

void Node::trim_inputs() {
  while (!inputs_.empty() && inputs_.back() == nullptr) inputs_.pop_back();
}

std::string Node::label() const {
  if (!name_.empty()) return op_type_ + " node '" + name_ + "'";
  for (const auto& output : outputs_) {
    if (output) return op_type_ + " node producing '" + output->name() + "'";
  }
  return op_type_ + " node";
}

}  // namespace graft
