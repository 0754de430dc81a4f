#include "core/graph/find.h"

#include "core/base/closest.h"

namespace graft::edit {
namespace {

std::vector<std::string> last_outputs(const Graph& graph, std::size_t most = 5) {
  std::vector<std::string> names;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    for (int i = 0; i < (*node)->output_count() && names.size() < most; ++i) {
      if ((*node)->output(i) != nullptr) names.push_back((*node)->output(i)->name());
    }
    if (names.size() == most) break;
  }
  return names;
}

}  // namespace

void refuse_unknown(const Graph& graph, std::string_view who, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Value* input : graph.inputs()) known.push_back(input->name());
  for (const auto& node : graph.nodes()) {
    known.push_back(node->name());
    for (int i = 0; i < node->output_count(); ++i) {
      if (node->output(i) != nullptr) known.push_back(node->output(i)->name());
    }
  }
  const std::vector<std::string> close = closest(name, known);
  const std::string hint = close.empty()
                               ? "the last values are: " + quoted_list(last_outputs(graph))
                               : "close names: " + quoted_list(close);
  fail(ErrorKind::argument, who, ": no value or node is named '", name, "'; ", hint);
}

Value* find_value(const Graph& graph, std::string_view who, std::string_view name) {
  if (Value* const value = graph.find(name)) return value;
  std::vector<const Node*> nodes;
  for (const auto& node : graph.nodes()) {
    if (!name.empty() && node->name() == name) nodes.push_back(node.get());
  }
  if (nodes.empty()) refuse_unknown(graph, who, name);
  if (nodes.size() > 1) {
    std::vector<std::string> outputs;
    for (const Node* node : nodes) {
      if (node->output() != nullptr) outputs.push_back(node->output()->name());
    }
    fail(ErrorKind::argument, who, ": ", nodes.size(), " nodes are named '", name,
         "'; name a value instead: ", quoted_list(outputs));
  }
  if (nodes[0]->output() == nullptr) {
    fail(ErrorKind::argument, who, ": ", nodes[0]->label(), " has no first output");
  }
  return nodes[0]->output();
}

ValueSet needed_values(const Graph& graph, const ValueSet& inputs,
                       const std::vector<Value*>& outputs) {
  ValueSet needed(outputs.begin(), outputs.end());
  std::vector<const Value*> open(outputs.begin(), outputs.end());
  std::unordered_set<const Node*> seen;
  while (!open.empty()) {
    const Value* const value = open.back();
    open.pop_back();
    const Node* const producer = value->producer();
    if (producer == nullptr || inputs.contains(value) || !seen.insert(producer).second) continue;
    for_each_read(*producer, [&](const Value& read) {
      if (&read.graph() == &graph && needed.insert(&read).second) open.push_back(&read);
    });
  }
  return needed;
}

}  // namespace graft::edit
