#include "core/layers/append.h"

#include <algorithm>

#include "core/base/closest.h"
#include "core/layers/layer_context.h"
#include "core/layers/output_types.h"

namespace graft::edit {
namespace {

std::size_t find_output(const Graph& graph, const std::string& after) {
  const std::vector<Value*>& outputs = graph.outputs();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    names.push_back(outputs[i]->name());
    if (names[i] == after) return i;
  }
  if (after.empty() && outputs.size() == 1) return 0;
  fail(ErrorKind::argument, "append: ",
       after.empty() ? text("the model has ", outputs.size(), " outputs; name one of them: ")
                     : text("'", after, "' is no output; truncate the model there, or name one of ",
                            "its outputs: "),
       quoted_list(names));
}

/// Every dim but the batch is known.
bool is_enough(const ValueType& type) {
  if (type.dtype == DType::undefined || !type.shape) return false;
  const SymShape& shape = *type.shape;
  return shape.rank() > 0 &&
         std::all_of(shape.begin() + 1, shape.end(), [](const Dim& dim) { return dim.is_known(); });
}

/// The type of a graph output, as recorded or, where that leaves something open, as inferred.
ValueType type_of_output(const Model& model, std::size_t index) {
  const ValueType& recorded = model.graph().outputs()[index]->type();
  return is_enough(recorded) ? recorded : inferred_output_types(model)[index];
}

/// Removes what was added since, unless it is kept.
class Rollback {
 public:
  explicit Rollback(Graph& graph)
      : graph_(graph),
        nodes_(graph.node_count()),
        initializers_(graph.initializers().size()),
        outputs_(graph.outputs()) {}
  ~Rollback() {
    if (is_kept_) return;
    graph_.set_outputs(outputs_);
    while (graph_.node_count() > nodes_) graph_.remove(graph_.nodes().back().get());
    while (graph_.initializers().size() > initializers_) {
      graph_.remove_initializer(graph_.initializers().back());
    }
  }
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;
  void keep() { is_kept_ = true; }

 private:
  Graph& graph_;
  std::size_t nodes_;
  std::size_t initializers_;
  std::vector<Value*> outputs_;
  bool is_kept_ = false;
};

}  // namespace

void append(Model& model, const std::vector<Layer>& layers, const AppendOptions& options) {
  Graph& graph = model.graph();
  if (layers.empty()) fail(ErrorKind::argument, "append: no layer is given");
  const std::size_t index = find_output(graph, options.after);
  Value* const from = graph.outputs()[index];
  const ValueType recorded = from->type();
  from->set_type(type_of_output(model, index));
  Rollback rollback(graph);
  try {
    LayerContext context(graph, model.opset(), options.seed);
    std::vector<Value*> outputs = graph.outputs();
    outputs[index] = add_layers(context, layers, from);
    graph.set_outputs(outputs);
  } catch (...) {
    from->set_type(recorded);
    throw;
  }
  rollback.keep();
  from->graph().preserve(from).in_value_info = !from->is_graph_input() && !from->is_graph_output();
}

}  // namespace graft::edit
