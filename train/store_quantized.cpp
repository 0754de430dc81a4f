#include "train/store_quantized.h"

#include <algorithm>
#include <utility>

#include "core/layers/known_value.h"

namespace graft::edit {
namespace {

/// Whether no input of the graph takes part in what the value is.
bool is_known(const Value* value) {
  if (value == nullptr || value->is_graph_input()) return false;
  if (value->is_initializer()) return true;
  const Node* const node = value->producer();
  return node != nullptr &&
         (node->is("Constant") || node->is("Identity") || node->is("Transpose") ||
          node->is("Reshape")) &&
         std::ranges::all_of(node->inputs(), is_known);
}

/// Removes what made a value that nothing reads any more.
void drop_unread(Graph& graph, Value* value) {
  if (value == nullptr || !value->is_unused() || value->is_graph_input()) return;
  Node* const node = value->producer();
  if (node == nullptr) return graph.remove_initializer(value);
  const std::vector<Value*> inputs = node->inputs();
  graph.remove(node);
  for (Value* input : inputs) drop_unread(graph, input);
}

}  // namespace

std::vector<std::string> store_quantized(Model& model) {
  Graph& graph = model.graph();
  std::vector<std::pair<Node*, Tensor>> found;  // all of it, before anything changes
  for (const auto& node : graph.nodes()) {
    const bool has_weight = node->is("QuantizeLinear") && is_known(node->input(0));
    if (!has_weight || !std::ranges::all_of(node->inputs(), [](const Value* input) {
          return input == nullptr || is_known(input);
        })) {
      continue;
    }
    found.emplace_back(node.get(), known_value(model, *node->output()));
  }
  std::vector<std::string> names;
  for (const auto& [node, tensor] : found) {
    Value* const output = node->output();
    const std::string name = output->name();
    Value* const stored = graph.add_initializer("", tensor);
    stored->role = Role::buffer;
    graph.replace_all_uses(output, stored);
    drop_unread(graph, output);
    graph.rename(stored, name);
    names.push_back(name);
  }
  return names;
}

}  // namespace graft::edit
