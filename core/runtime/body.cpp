#include "core/runtime/body.h"

#include <algorithm>
#include <unordered_map>

#include "core/passes/pass.h"

namespace graft {
namespace {

/// Replaces what a graph and its bodies read from outside by values of the graph's own.
class Closer {
 public:
  explicit Closer(Graph& graph) : graph_(graph) {}

  std::vector<Value*> run() {
    visit(graph_);
    return std::move(captures_);
  }

 private:
  bool is_inside(const Value& value) const {
    return std::ranges::find(scope_, &value.graph()) != scope_.end();
  }

  void visit(Graph& graph) {
    scope_.push_back(&graph);
    for (const auto& node : graph.nodes()) {
      for (int i = 0; i < node->input_count(); ++i) {
        Value* const input = node->input(i);
        if (input != nullptr && !is_inside(*input)) node->set_input(i, own(*input));
      }
      for_each_body(*node, [&](Graph& body) { visit(body); });
    }
    std::vector<Value*> outputs = graph.outputs();
    for (Value*& output : outputs) {
      if (!is_inside(*output)) output = own(*output);
    }
    graph.set_outputs(outputs);
    scope_.pop_back();
  }

  Value* own(Value& outer) {
    const auto [at, is_new] = own_.try_emplace(&outer, nullptr);
    if (!is_new) return at->second;
    const std::string name = graph_.unique_name(outer.name());
    if (outer.is_initializer() && !outer.is_graph_input()) {
      at->second = graph_.add_initializer(name, outer.initializer());
      at->second->is_variable = outer.is_variable;
    } else {
      at->second = graph_.add_input(name, {});
      captures_.push_back(&outer);
    }
    return at->second;
  }

  Graph& graph_;
  std::vector<const Graph*> scope_;
  std::unordered_map<const Value*, Value*> own_;
  std::vector<Value*> captures_;
};

}  // namespace

Body::Body(const Graph& body) {
  std::unique_ptr<Graph> graph = body.clone();
  const std::vector<Value*> arguments = passes::required_inputs(*graph);
  argument_count_ = static_cast<int>(arguments.size());
  // Shapes may change from call to call, whatever the file declares.
  for (Value* argument : arguments) {
    if (!argument->type().is_container) argument->set_type({argument->dtype(), std::nullopt});
  }
  for (const Value* output : graph->outputs()) outputs_.push_back(output->type());
  captures_ = Closer(*graph).run();
  program_ = std::make_unique<Program>(std::move(graph));
}

}  // namespace graft
