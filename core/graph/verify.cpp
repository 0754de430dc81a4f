#include "core/graph/verify.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace graft {
namespace {

/// Whether a graph reads its own values alone.
bool is_closed(const Graph& graph) {
  const auto is_own = [&](const Value* value) {
    return value == nullptr || &value->graph() == &graph;
  };
  return std::ranges::all_of(graph.outputs(), is_own) &&
         std::ranges::all_of(graph.nodes(), [&](const auto& node) {
           bool has_body = false;
           for_each_body(*node, [&](const Graph&) { has_body = true; });
           return !has_body && std::ranges::all_of(node->inputs(), is_own);
         });
}

class Verifier {
 public:
  explicit Verifier(const Graph& root) : root_(root) {}

  void run() {
    visit(root_);
    for (const Value* value : values_) check_uses(*value);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(const Graph& graph, const Args&... args) const {
    fail(ErrorKind::model, "graph '", graph.name, "': ", args...);
  }

  void visit(const Graph& graph);
  void declare_constants(const Graph& graph);
  void declare(const Value& value, const Graph& graph);
  void visit_node(const Node& node, const Graph& graph);
  void visit_bodies(const Node& node, const Graph& graph);
  void check_attributes(const Node& node, const Graph& graph) const;
  void check_initializer(const Value& value, const Graph& graph) const;
  /// What a reader in `graph` may read now: a node, or null for the list of outputs.
  void check_read(const Value& value, const Graph& graph, const Node* reader) const;
  void check_uses(const Value& value) const;
  bool is_outside(const Graph& graph) const;

  const Graph& root_;
  std::unordered_set<const Graph*> graphs_;
  std::unordered_set<const Node*> nodes_;
  std::vector<const Value*> values_;
  std::unordered_set<const Value*> available_;
  std::unordered_map<const Value*, std::size_t> reads_;    // inputs of nodes that read the value
  std::unordered_map<const Value*, std::size_t> results_;  // times that it is a graph output
};

/// True for the graphs round the one that `verify` was given.
bool Verifier::is_outside(const Graph& graph) const {
  for (const Graph* outer = root_.parent(); outer != nullptr; outer = outer->parent()) {
    if (outer == &graph) return true;
  }
  return false;
}

void Verifier::declare(const Value& value, const Graph& graph) {
  if (value.name().empty()) refuse(graph, "a value has no name");
  if (&value.graph() != &graph) {
    refuse(graph, "value '", value.name(), "' belongs to graph '", value.graph().name, "'");
  }
  if (graph.find(value.name()) != &value) {
    refuse(graph, "two values are named '", value.name(), "', or its name is not registered");
  }
  if (!available_.insert(&value).second) {
    refuse(graph, "value '", value.name(), "' is declared twice");
  }
  values_.push_back(&value);
}

void Verifier::check_initializer(const Value& value, const Graph& graph) const {
  const Tensor& tensor = value.initializer();
  bool fits = value.dtype() == DType::undefined || value.dtype() == tensor.dtype();
  if (const auto& shape = value.shape()) {
    fits = fits && shape->rank() == tensor.rank();
    for (int i = 0; fits && i < shape->rank(); ++i) {
      fits = !(*shape)[i].is_known() || (*shape)[i].value() == tensor.shape()[i];
    }
  }
  if (!fits) {
    refuse(graph, "initializer '", value.name(), "' is ", describe(tensor), ", but declared as ",
           value.type());
  }
}

void Verifier::declare_constants(const Graph& graph) {
  for (const Value* input : graph.inputs()) {
    if (!input->is_graph_input() || input->producer() != nullptr) {
      refuse(graph, "input '", input->name(), "' is not marked as one or has a producer");
    }
    declare(*input, graph);
  }
  std::unordered_set<const Value*> seen;
  for (const Value* value : graph.initializers()) {
    if (!value->is_initializer() || value->producer() != nullptr || !seen.insert(value).second) {
      refuse(graph, "initializer '", value->name(),
             "' has no tensor, has a producer or is listed twice");
    }
    if (!value->is_graph_input()) declare(*value, graph);
    check_initializer(*value, graph);
  }
}

void Verifier::check_read(const Value& value, const Graph& graph, const Node* reader) const {
  const auto label = [&] { return reader == nullptr ? "the list of outputs" : reader->label(); };
  if (!available_.contains(&value) && !is_outside(value.graph())) {
    refuse(graph, label(), " reads '", value.name(), "' of graph '", value.graph().name,
           "', which is not computed before it or not visible from it");
  }
  const Value* const found = graph.find_in_scope(value.name());
  if (found != &value) {
    refuse(graph, label(), " reads '", value.name(), "' of graph '", value.graph().name,
           "', but by name it finds ", found == nullptr ? "nothing" : "a nearer value",
           "; rename one of them");
  }
}

void Verifier::check_attributes(const Node& node, const Graph& graph) const {
  std::vector<std::string_view> names;
  for (const Attribute& attribute : node.attributes) names.push_back(attribute.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) {
    refuse(graph, node.label(), " has two attributes named '", *twice, "'");
  }
}

void Verifier::visit_bodies(const Node& node, const Graph& graph) {
  for_each_body(node, [&](const Graph& body) {
    if (body.parent() != &graph) {
      refuse(graph, "body '", body.name, "' of ", node.label(),
             " does not have this graph as its parent");
    }
    if (graphs_.contains(&body) && is_closed(body)) return;
    const std::size_t first = values_.size();
    visit(body);
    for (std::size_t i = first; i < values_.size(); ++i) available_.erase(values_[i]);
  });
}

void Verifier::visit_node(const Node& node, const Graph& graph) {
  nodes_.insert(&node);
  if (&node.graph() != &graph) {
    refuse(graph, node.label(), " belongs to graph '", node.graph().name, "'");
  }
  for (const Value* input : node.inputs()) {
    if (input == nullptr) continue;
    check_read(*input, graph, &node);
    ++reads_[input];
  }
  check_attributes(node, graph);
  visit_bodies(node, graph);
  for (int i = 0; i < node.output_count(); ++i) {
    const Value* const output = node.output(i);
    if (output == nullptr) continue;
    if (output->producer() != &node || output->output_index() != i || output->is_graph_input() ||
        output->is_initializer()) {
      refuse(graph, "'", output->name(), "', output ", i, " of ", node.label(),
             ", names another producer or is an input or initializer too");
    }
    declare(*output, graph);
  }
}

void Verifier::visit(const Graph& graph) {
  if (!graphs_.insert(&graph).second) {
    refuse(graph, "it is the body of two nodes; clone it instead");
  }
  declare_constants(graph);
  for (const auto& node : graph.nodes()) visit_node(*node, graph);
  for (const Value* output : graph.outputs()) {
    check_read(*output, graph, nullptr);
    ++results_[output];
  }
}

void Verifier::check_uses(const Value& value) const {
  std::vector<std::pair<const Node*, int>> readers;
  for (const Use& use : value.uses()) readers.emplace_back(use.node, use.index);
  std::ranges::sort(readers);
  // The set of nodes is asked first: a stale use may point at a node that is gone.
  const bool all_read = std::ranges::all_of(readers, [&](const auto& reader) {
    return nodes_.contains(reader.first) && reader.first->input(reader.second) == &value;
  });
  if (!all_read || std::ranges::adjacent_find(readers) != readers.end()) {
    refuse(value.graph(), "the use list of '", value.name(),
           "' holds a reader that does not read it, or one twice");
  }
  const auto reads = reads_.find(&value);
  if (readers.size() != (reads == reads_.end() ? 0 : reads->second)) {
    refuse(value.graph(), "the use list of '", value.name(), "' lacks a reader");
  }
  if (value.is_graph_output() != results_.contains(&value)) {
    refuse(value.graph(), "'", value.name(), "' is ", value.is_graph_output() ? "" : "not ",
           "marked as graph output, against the graph's list");
  }
}

}  // namespace

void verify(const Graph& graph) {
  Verifier(graph).run();
}

void verify(const Model& model) {
  verify(model.graph());
  // Some exporters list an import twice, which says nothing new.
  for (const OpsetImport& import : model.opset_imports) {
    if (model.opset(import.domain) != import.version) {
      fail(ErrorKind::model, "the model imports two opsets of domain '", import.domain, "'");
    }
  }
  std::set<std::pair<std::string_view, std::string_view>> functions;
  for (const Function& function : model.functions) {
    if (!functions.emplace(function.domain, function.name).second) {
      fail(ErrorKind::model, "the model has two functions named '", function.name, "' in domain '",
           function.domain, "'");
    }
    if (!function.body) fail(ErrorKind::model, "function '", function.name, "' has no body");
    verify(*function.body);
  }
}

}  // namespace graft
