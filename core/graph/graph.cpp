#include "core/graph/graph.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/time_limit.h"

namespace graft {
namespace {

std::string users_of(const Value& value) {
  std::string list;
  for (const Use& use : value.uses()) list += (list.empty() ? "" : ", ") + use.node->label();
  if (value.is_graph_output()) list += (list.empty() ? "" : ", ") + std::string("graph output");
  return list;
}

void refuse_if_used(const Value& value) {
  if (!value.is_unused()) {
    fail(ErrorKind::argument, "cannot remove '", value.name(), "': still read by ", users_of(value),
         "; replace its uses first");
  }
}

void refuse_null(const Value* value, const std::string& graph, std::string_view what) {
  if (value == nullptr) {
    fail(ErrorKind::argument, "graph '", graph, "': the value to ", what, " is null");
  }
}

template <class T>
void erase_value(std::vector<T>& list, const Value* value) {
  // From the back: whole lists are emptied last value first.
  const auto at =
      std::find_if(list.rbegin(), list.rend(), [&](const T& entry) { return &*entry == value; });
  if (at != list.rend()) list.erase(std::next(at).base());
}

/// Lets the outputs of all bodies below `graph` that are `from` become `to`.
void replace_body_outputs(const Graph& graph, Value* from, Value* to) {
  for (const auto& node : graph.nodes()) {
    for_each_body(*node, [&](Graph& body) {
      if (std::ranges::find(body.outputs(), from) != body.outputs().end()) {
        std::vector<Value*> outputs = body.outputs();
        std::ranges::replace(outputs, from, to);
        body.set_outputs(outputs);
      }
      replace_body_outputs(body, from, to);
    });
  }
}

/// So that the next `more` elements are added without an allocation, which may fail half-way.
template <class List>
void make_room(List& list, std::size_t more = 1) {
  const std::size_t wanted = list.size() + more;
  if (wanted > list.capacity()) list.reserve(std::max(wanted, 2 * list.capacity()));
}

}  // namespace

Graph::Graph(std::string graph_name, Graph* parent)
    : name(std::move(graph_name)), parent_(parent), nodes_(memory_) {}

/// No body may point at a value when the first one dies, nor a value of an outer graph at a node.
Graph::~Graph() {
  disconnect(true);
}

void Graph::disconnect(bool for_good) {
  set_outputs({});
  for (const auto& node : nodes_) {
    for (int i = 0; reads_outside_ && i < node->input_count(); ++i) {
      const Value* const input = node->input(i);
      if (input != nullptr && input->graph_ != this) node->set_input(i, nullptr);
    }
    for_each_body(*node, [this](Graph& body) {
      if (body.parent_ == this) body.disconnect(false);
    });
    if (for_good) node->attributes = {};
  }
}

Value* Graph::make_value(std::string_view value_name) {
  std::string chosen = value_name.empty() ? unique_name("value") : std::string(value_name);
  std::unique_ptr<Value> value(::new (memory_.allocate(sizeof(Value)))
                                   Value(this, std::move(chosen)));
  if (by_name_.insert(value.get()) != value.get()) {
    fail(ErrorKind::model, "graph '", name, "' already has a value named '", value->name_, "'");
  }
  return value.release();  // the caller owns it at once
}

Value* Graph::add_input(std::string_view value_name, ValueType type) {
  make_room(owned_);
  make_room(inputs_);
  Value* const value = owned_.emplace_back(make_value(value_name)).get();
  value->type_ = std::move(type);
  value->is_input_ = true;
  inputs_.push_back(value);
  return value;
}

Value* Graph::add_initializer(std::string_view value_name, Tensor tensor) {
  if (!tensor.defined()) fail(ErrorKind::argument, "initializer '", value_name, "' has no tensor");
  const ValueType type{tensor.dtype(), share_dims(SymShape(tensor.shape()))};
  return place_initializer(value_name, std::move(tensor), type);
}

Value* Graph::place_initializer(std::string_view value_name, Tensor tensor, const ValueType& type) {
  make_room(owned_);
  make_room(initializers_);
  Value* value = value_name.empty() ? nullptr : find(value_name);
  if (value == nullptr || !value->is_input_ || value->is_initializer()) {
    value = owned_.emplace_back(make_value(value_name)).get();
  }
  if (!value->is_input_) value->type_ = type;
  value->initializer_ = std::move(tensor);
  initializers_.push_back(value);
  return value;
}

void Graph::add_output(Value* value) {
  if (value == nullptr) fail(ErrorKind::argument, "graph '", name, "': the output to add is null");
  outputs_.push_back(value);
  ++value->output_count_;
}

void Graph::set_outputs(const std::vector<Value*>& values) {
  if (std::ranges::find(values, nullptr) != values.end()) {
    fail(ErrorKind::argument, "graph '", name, "': an output is null");
  }
  for (Value* value : outputs_) --value->output_count_;
  outputs_.clear();
  for (Value* value : values) add_output(value);
}

void Graph::remove_input(Value* value) {
  refuse_null(value, name, "remove");
  if (!value->is_input_ || value->graph_ != this) {
    fail(ErrorKind::argument, "'", value->name_, "' is not an input of graph '", name, "'");
  }
  refuse_if_used(*value);
  drop(value);
}

void Graph::remove_initializer(Value* value) {
  refuse_null(value, name, "remove");
  if (!value->is_initializer() || value->graph_ != this) {
    fail(ErrorKind::argument, "'", value->name_, "' is not an initializer of graph '", name, "'");
  }
  if (value->is_input_) {
    value->initializer_ = {};
    erase_value(initializers_, value);
    return;
  }
  refuse_if_used(*value);
  drop(value);
}

void Graph::forget(const Value& value) {
  by_name_.erase(value);
  if (!preserved_values_.empty()) preserved_values_.erase(&value);
}

void Graph::drop(Value* value) {
  forget(*value);
  erase_value(inputs_, value);
  erase_value(initializers_, value);
  erase_value(owned_, value);
}

Node* Graph::add_node(std::string_view op_type, std::string_view domain,
                      const std::vector<Value*>& inputs, const std::vector<std::string>& outputs,
                      Attributes attributes, Node* before) {
  check_time();
  const auto at = before == nullptr ? nodes_.end() : before->position_;
  // Made first: a piece of the pool has no owner until its node stands there.
  const OpName& op = op_names_.of(op_type, domain == "ai.onnx" ? std::string_view() : domain);
  std::unique_ptr<Node> made(::new (memory_.allocate(sizeof(Node))) Node(this, op));
  const auto position = nodes_.emplace(at, std::move(made));
  Node* const node = position->get();
  node->position_ = position;
  try {
    node->inputs_.reserve(inputs.size());
    node->use_places_.reserve(inputs.size());
    node->outputs_.reserve(outputs.size());
    for (const std::string& output : outputs) add_node_output(node, output);
    for (std::size_t i = 0; i < inputs.size(); ++i) node->set_input(static_cast<int>(i), inputs[i]);
  } catch (...) {
    remove(node);
    throw;
  }
  node->attributes = share_list(std::move(attributes));
  return node;
}

Value* Graph::add_node_output(Node* node, std::string_view value_name) {
  if (value_name.empty()) {
    node->outputs_.push_back(nullptr);
    return nullptr;
  }
  make_room(node->outputs_);
  Value* const value = make_value(value_name);
  value->producer_ = node;
  value->output_index_ = node->output_count();
  node->outputs_.emplace_back(value);
  return value;
}

void Graph::remove(Node* node) {
  for (const auto& output : node->outputs_) {
    if (output) refuse_if_used(*output);
  }
  for (int i = 0; i < node->input_count(); ++i) node->set_input(i, nullptr);
  for (const auto& output : node->outputs_) {
    if (output) forget(*output);
  }
  nodes_.erase(node->position_);
}

void Graph::move(Node* node, Node* before) {
  nodes_.splice(before == nullptr ? nodes_.end() : before->position_, nodes_, node->position_);
}

Node* Graph::next(const Node* node) const {
  const auto after = std::next(node->position_);
  return after == nodes_.end() ? nullptr : after->get();
}

Value* Graph::find(std::string_view value_name) const {
  return by_name_.find(value_name);
}

Value* Graph::find_in_scope(std::string_view value_name) const {
  for (const Graph* graph = this; graph != nullptr; graph = graph->parent_) {
    if (Value* const value = graph->find(value_name)) return value;
  }
  return nullptr;
}

void Graph::rename(Value* value, std::string_view new_name) {
  refuse_null(value, name, "rename");
  if (value->graph_ != this) {
    fail(ErrorKind::argument, "'", value->name_, "' is not a value of graph '", name, "'");
  }
  if (value->name_ == new_name) return;
  bool is_taken = new_name.empty() || find_in_scope(new_name) != nullptr;
  for (const Use& use : value->uses_) {  // a body that reads the value may hold that name itself
    for (const Graph* body = use.node->graph_; body != this; body = body->parent_) {
      is_taken = is_taken || body->find(new_name) != nullptr;
    }
  }
  if (is_taken) {
    fail(ErrorKind::model, "cannot rename '", value->name_, "' to '", new_name,
         "': the name is empty or taken");
  }
  std::string chosen(new_name);
  by_name_.erase(*value);
  value->name_.swap(chosen);
  by_name_.insert(value);  // in the place that was left, so that it cannot fail
}

std::string Graph::unique_name(std::string_view stem) {
  std::string candidate(stem.empty() ? "value" : stem);
  if (find_in_scope(candidate) == nullptr) return candidate;
  const auto known = next_suffix_.find(candidate);
  int suffix = known == next_suffix_.end() ? 0 : known->second;
  std::string numbered;
  do {
    numbered = candidate + "_" + std::to_string(++suffix);
  } while (find_in_scope(numbered) != nullptr);
  if (known != next_suffix_.end()) {
    known->second = suffix;
  } else if (suffix > 1) {  // most stems never have a third name
    next_suffix_.emplace(std::move(candidate), suffix);
  }
  return numbered;
}

const PreservedValue& Graph::preserved_of(const Value* value) const {
  static const PreservedValue kNothing;
  const auto at = preserved_values_.find(value);
  return at == preserved_values_.end() ? kNothing : at->second;
}

void Graph::replace_all_uses(Value* from, Value* to) {
  refuse_null(from, name, "replace");
  refuse_null(to, name, "put in its place");
  if (from == to) return;
  make_room(to->uses_, from->uses_.size());
  const auto uses = std::move(from->uses_);
  from->uses_.clear();
  for (const Use& use : uses) {
    use.node->inputs_[static_cast<std::size_t>(use.index)] = to;
    to->add_use(use);
    use.node->graph_->note_read(*to);
  }
  if (!from->is_graph_output()) return;
  for (Value*& output : from->graph().outputs_) {
    if (output != from) continue;
    output = to;
    ++to->output_count_;
    if (--from->output_count_ == 0) return;
  }
  replace_body_outputs(from->graph(), from, to);
}

}  // namespace graft
