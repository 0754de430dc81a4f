#include "core/graph/edit.h"

#include <algorithm>
#include <unordered_set>

#include "core/graph/find.h"
#include "core/graph/frozen.h"

namespace graft::edit {
namespace {

void check_cut(const Graph& graph, std::string_view who, const std::vector<Value*>& inputs,
               const std::vector<Value*>& outputs) {
  const ValueSet boundary(inputs.begin(), inputs.end());
  if (boundary.size() != inputs.size() ||
      ValueSet(outputs.begin(), outputs.end()).size() != outputs.size()) {
    fail(ErrorKind::argument, who, ": a value is named twice");
  }
  for (const Value* output : outputs) {
    if (output->producer() == nullptr || boundary.contains(output)) {
      fail(ErrorKind::argument, who, ": '", output->name(),
           "' is an input or initializer; name a value that a node computes");
    }
  }
  for (const Value* input : inputs) {
    if (input->is_initializer() ||
        (!input->is_graph_input() && input->dtype() == DType::undefined)) {
      fail(ErrorKind::argument, who, ": '", input->name(), "' cannot become an input: it is ",
           input->is_initializer() ? "an initializer" : "of unknown type; infer types first");
    }
  }
  if (inputs.empty()) return;
  for (const Value* value : needed_values(graph, boundary, outputs)) {
    if (value->is_graph_input() && !value->is_initializer() && !boundary.contains(value)) {
      fail(ErrorKind::argument, who, ": the outputs also need graph input '", value->name(),
           "'; list it too, or a value on the way from it");
    }
  }
}

/// A new graph input takes the place and the name of a computed value.
void become_input(Graph& graph, Value& value) {
  const std::string name = value.name();
  Value* const input = graph.add_input("", value.type());
  graph.preserve(input).info = graph.preserved_of(&value).info;
  graph.replace_all_uses(&value, input);
  graph.rename(&value, graph.unique_name(name));
  graph.rename(input, name);
}

void cut(Graph& graph, std::string_view who, const std::vector<Value*>& inputs,
         const std::vector<Value*>& outputs) {
  check_cut(graph, who, inputs, outputs);
  // A former output that remains keeps its declared type, an output is not declared twice.
  for (Value* value : graph.outputs()) {
    const bool is_typed = value->producer() != nullptr && value->dtype() != DType::undefined;
    graph.preserve(value).in_value_info = is_typed;
  }
  for (Value* value : outputs) graph.preserve(value).in_value_info = false;
  graph.set_outputs(outputs);
  ValueSet wanted;
  for (Value* value : inputs) {
    if (value->is_graph_input()) {
      wanted.insert(value);
    } else {
      become_input(graph, *value);
      wanted.insert(graph.inputs().back());
    }
  }
  remove_unused(graph);
  const std::vector<Value*> all = graph.inputs();
  for (auto input = all.rbegin(); input != all.rend(); ++input) {
    if ((*input)->is_unused() && !wanted.contains(*input)) graph.remove_input(*input);
  }
}

bool is_dead(const Node& node) {
  bool has_output = false;
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) == nullptr) continue;
    if (!node.output(i)->is_unused()) return false;
    has_output = true;
  }
  return has_output;
}

}  // namespace

void truncate(Model& model, std::string_view value) {
  cut(model.graph(), "truncate", {}, {find_value(model.graph(), "truncate", value)});
  forget_frozen(model);
}

void extract(Model& model, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs) {
  Graph& graph = model.graph();
  if (outputs.empty()) fail(ErrorKind::argument, "extract: no output is named");
  std::vector<Value*> from;
  for (const std::string& name : inputs) from.push_back(find_value(graph, "extract", name));
  std::vector<Value*> to;
  for (const std::string& name : outputs) to.push_back(find_value(graph, "extract", name));
  cut(graph, "extract", from, to);
  forget_frozen(model);
}

std::size_t remove_unused(Graph& graph) {
  std::size_t removed = 0;
  // Readers stand behind what they read, so one walk from the back finds whole dead chains.
  std::vector<Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (is_dead(**node)) {
      graph.remove(*node);
      ++removed;
    } else {
      for_each_body(**node, [&](Graph& body) { removed += remove_unused(body); });
    }
  }
  const std::vector<Value*> initializers = graph.initializers();
  for (auto value = initializers.rbegin(); value != initializers.rend(); ++value) {
    if ((*value)->is_graph_input() || !(*value)->is_unused()) continue;
    graph.remove_initializer(*value);
    ++removed;
  }
  return removed;
}

bool is_name_of_body(const Graph& graph, std::string_view name) {
  bool found = false;
  for (const auto& node : graph.nodes()) {
    for_each_body(*node, [&](const Graph& body) {
      found = found || body.find(name) != nullptr || is_name_of_body(body, name);
    });
  }
  return found;
}

void rename(Model& model, std::string_view from, std::string_view to) {
  Value* const value = model.graph().find(from);
  if (value == nullptr) refuse_unknown(model.graph(), "rename", from);
  if (is_name_of_body(model.graph(), to)) {
    fail(ErrorKind::model, "cannot rename '", from, "' to '", to,
         "': a value in the body of a node has that name");
  }
  const std::vector<std::string> frozen = frozen_names(model);
  const bool was_frozen = std::ranges::find(frozen, from) != frozen.end();
  model.graph().rename(value, to);
  if (was_frozen) freeze(model, [&](const Value& weight) { return &weight == value; });
  forget_frozen(model);
}

namespace {

constexpr int kMean = 3;
constexpr int kVariance = 4;

bool is_statistic(const Use& use, int slot) {
  return use.index == slot && use.node->is("BatchNormalization");
}

/// "bn.running_mean" for "bn.bias".
std::string statistic_name(const std::string& name, int slot) {
  const std::size_t dot = name.rfind('.');
  const std::string prefix = dot == name.npos ? name + "_" : name.substr(0, dot + 1);
  return prefix + (slot == kMean ? "running_mean" : "running_var");
}

/// Gives the BatchNormalizations that read the value as mean, or as variance, one of their own if
/// there are other readers. Whether it did.
bool separate_statistic(Graph& graph, Value* value, int slot) {
  std::vector<Use> statistics;
  for (const Use& use : value->uses()) {
    if (is_statistic(use, slot)) statistics.push_back(use);
  }
  if (statistics.empty() || statistics.size() == value->uses().size()) return false;
  Value* const own = graph.add_initializer(graph.unique_name(statistic_name(value->name(), slot)),
                                           value->initializer().clone());
  own->role = Role::statistic;
  for (const Use& use : statistics) use.node->set_input(use.index, own);
  return true;
}

}  // namespace

std::size_t separate_initializers(Graph& graph) {
  std::size_t count = 0;
  for (auto next = graph.nodes().begin(); next != graph.nodes().end();) {
    Node* const node = (next++)->get();  // which may go
    const Value* const source = node->input(0);
    Value* const output = node->output(0);
    if (!node->is("Identity") || source == nullptr || !source->is_initializer() ||
        source->is_graph_input() || output == nullptr || output->is_graph_output()) {
      continue;
    }
    const std::string name = output->name();
    graph.rename(output, graph.unique_name(name));
    Value* const own = graph.add_initializer(name, source->initializer().clone());
    own->role = output->role;
    graph.replace_all_uses(output, own);
    graph.remove(node);
    ++count;
  }
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* const value : initializers) {
    if (value->is_graph_input() || value->uses().size() < 2) continue;
    for (const int slot : {kMean, kVariance}) {
      count += separate_statistic(graph, value, slot) ? 1 : 0;
    }
  }
  return count;
}

}  // namespace graft::edit
