#include "core/passes/splice_internal.h"

#include "core/ops/builder.h"

namespace graft::passes {
namespace {

Value* mapped(const ValueMap& map, Value* value) {
  Value* const* const twin = map.find(value);
  return twin == nullptr ? value : *twin;
}

void copy_node(const Node& from, Graph& into, Node* before, const std::string& prefix,
               ValueMap& map) {
  std::vector<Value*> inputs;
  for (Value* input : from.inputs()) {
    inputs.push_back(input == nullptr ? nullptr : mapped(map, input));
  }
  Node* const node = into.add_node(from.op_type(), from.domain(), inputs, {}, {}, before);
  if (!from.name().empty()) node->set_name(prefix + from.name());
  for (int i = 0; i < from.output_count(); ++i) {
    const Value* const output = from.output(i);
    Value* const copy = into.add_node_output(
        node, output == nullptr ? "" : into.unique_name(prefix + output->name()));
    if (output == nullptr) continue;
    copy->set_type(output->type());
    map[output] = copy;
  }
  node->attributes = clone_attributes(from.attributes, map, &into);
}

/// A graph output keeps its name whatever computes it.
Value* with_name(Graph& graph, Node& node, Value* result, const std::string& name) {
  const bool is_own =
      result->producer() != nullptr && &result->graph() == &graph && !result->is_graph_output();
  Value* const renamed =
      is_own ? result : Builder(graph, &node).node("Identity", "", {result}, 1)->output();
  graph.rename(renamed, name);
  return renamed;
}

}  // namespace

std::vector<Value*> splice(const Graph& body, Graph& into, Node* before,
                           const std::vector<Value*>& arguments, const std::string& prefix) {
  ValueMap map;
  for (std::size_t i = 0; i < body.inputs().size(); ++i) {
    map[body.inputs()[i]] = i < arguments.size() ? arguments[i] : nullptr;
  }
  for (const Value* initializer : body.initializers()) {
    Value* const* const given = map.find(initializer);
    if (given != nullptr && *given != nullptr) continue;
    Value* const copy = into.add_initializer(into.unique_name(prefix + initializer->name()),
                                             initializer->initializer());
    copy->is_variable = initializer->is_variable;
    copy->role = initializer->role;
    map[initializer] = copy;
  }
  for (const auto& node : body.nodes()) copy_node(*node, into, before, prefix, map);
  std::vector<Value*> results;
  for (Value* output : body.outputs()) results.push_back(mapped(map, output));
  return results;
}

std::uint64_t count_nodes(const Graph& graph) {
  std::uint64_t count = graph.node_count();
  for (const auto& node : graph.nodes()) {
    for_each_body(*node, [&](const Graph& body) { count += count_nodes(body); });
  }
  return count;
}

void replace_node(Node& node, const std::vector<Value*>& results) {
  Graph& graph = node.graph();
  for (int i = 0; i < node.output_count(); ++i) {
    Value* const output = node.output(i);
    if (output == nullptr || output->is_unused()) continue;
    const auto index = static_cast<std::size_t>(i);
    Value* result = index < results.size() ? results[index] : nullptr;
    if (result == nullptr) {
      fail(ErrorKind::model, node.label(), ": '", output->name(), "' is read, but has no value");
    }
    if (output->is_graph_output()) {
      const std::string name = output->name();
      graph.rename(output, graph.unique_name(name + "_replaced"));
      result = with_name(graph, node, result, name);
    }
    graph.replace_all_uses(output, result);
  }
  graph.remove(&node);
}

}  // namespace graft::passes
