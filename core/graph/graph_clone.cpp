#include <algorithm>

#include "core/graph/graph.h"

namespace graft {

AttributeValue clone_value(const AttributeValue& value, ValueMap& map, Graph* parent) {
  if (const auto* body = std::get_if<std::shared_ptr<Graph>>(&value)) {
    return std::shared_ptr<Graph>((*body)->clone(&map, parent));
  }
  if (const auto* bodies = std::get_if<std::vector<std::shared_ptr<Graph>>>(&value)) {
    std::vector<std::shared_ptr<Graph>> copies;
    for (const auto& body : *bodies) copies.push_back(body->clone(&map, parent));
    return copies;
  }
  return value;
}

Attributes clone_attributes(Attributes attributes, ValueMap& map, Graph* parent) {
  const auto holds_body = [](const Attribute& attribute) {
    return std::holds_alternative<std::shared_ptr<Graph>>(attribute.value) ||
           std::holds_alternative<std::vector<std::shared_ptr<Graph>>>(attribute.value);
  };
  if (std::ranges::any_of(attributes, holds_body)) {
    attributes.change_each(
        [&](Attribute& attribute) { attribute.value = clone_value(attribute.value, map, parent); });
  }
  return attributes;
}

namespace {

Value* mapped(const ValueMap& map, Value* value) {
  Value* const* const twin = map.find(value);
  return twin == nullptr ? value : *twin;
}

void copy_info(const Value& from, Value& to) {
  to.set_type(from.type());
  to.role = from.role;
  to.is_variable = from.is_variable;
  to.layout = from.layout;
}

Node* clone_unconnected(const Node& from, Graph& into, ValueMap& map) {
  Node* const node = into.add_node(from.op_type(), from.domain(), {}, {});
  node->set_name(from.name());
  node->doc = from.doc;
  node->preserved = from.preserved;
  for (int i = 0; i < from.output_count(); ++i) {
    const Value* const output = from.output(i);
    Value* const twin = into.add_node_output(node, output == nullptr ? "" : output->name());
    if (output == nullptr) continue;
    copy_info(*output, *twin);
    map[output] = twin;
  }
  return node;
}

void connect(const Node& from, Node& node, ValueMap& map) {
  if (from.input_count() > 0) node.set_input(from.input_count() - 1, nullptr);  // room for all
  for (int i = 0; i < from.input_count(); ++i) {
    Value* const input = from.input(i);
    node.set_input(i, input == nullptr ? nullptr : mapped(map, input));
  }
  node.attributes = clone_attributes(from.attributes, map, &node.graph());
}

}  // namespace

std::unique_ptr<Graph> Graph::clone(ValueMap* map, Graph* parent) const {
  ValueMap own_map;
  ValueMap& values = map != nullptr ? *map : own_map;
  auto copy = std::make_unique<Graph>(name, parent);
  copy->doc = doc;
  copy->preserved = preserved;
  copy->folding_left_ = folding_left_;
  copy->by_name_.reserve(by_name_.size());
  values.reserve(values.size() + by_name_.size());
  for (const Value* input : inputs_) {
    Value* const twin = copy->add_input(input->name(), input->type());
    copy_info(*input, *twin);
    values[input] = twin;
  }
  for (const Value* initializer : initializers_) {
    Value* const twin = copy->place_initializer(initializer->name(), initializer->initializer(),
                                                initializer->type());
    copy_info(*initializer, *twin);
    values[initializer] = twin;
  }
  // In two steps, so that a graph that is out of order is copied as it is too.
  std::vector<Node*> twins;
  for (const auto& node : nodes_) twins.push_back(clone_unconnected(*node, *copy, values));
  auto twin = twins.begin();
  for (const auto& node : nodes_) connect(*node, **twin++, values);
  for (Value* output : outputs_) copy->add_output(mapped(values, output));
  copy->preserved_values_.reserve(preserved_values_.size());
  for (const auto& [value, kept] : preserved_values_) {
    copy->preserved_values_.emplace(values.at(value), kept);
  }
  return copy;
}

}  // namespace graft
