#include "core/layers/append.h"

#include <algorithm>

#include "core/base/closest.h"
#include "core/graph/find.h"
#include "core/layers/layer_context.h"
#include "core/layers/retype.h"
#include "core/layers/weighted_layers.h"

namespace graft::edit {
namespace {

Value* find_place(const Graph& graph, const std::string& after) {
  if (!after.empty()) return find_value(graph, "append", after);
  if (graph.outputs().size() == 1) return graph.outputs()[0];
  std::vector<std::string> names;
  for (const Value* output : graph.outputs()) names.push_back(output->name());
  fail(ErrorKind::argument, "append: the model has ", names.size(),
       " outputs; name one of them: ", quoted_list(names));
}

/// The outputs with `to` in the place of `from`, or behind them if that is none.
std::vector<Value*> with_output(const Graph& graph, Value* from, Value* to) {
  std::vector<Value*> outputs = graph.outputs();
  const auto at = std::ranges::find(outputs, from);
  if (at == outputs.end()) {
    outputs.push_back(to);
  } else {
    *at = to;
  }
  return outputs;
}

/// Whether the file should list the value's type: an output's stands elsewhere.
void declare(Value& value) {
  value.graph().preserve(&value).in_value_info =
      !value.is_graph_input() && !value.is_graph_output() && value.dtype() != DType::undefined;
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
  Value* const from = find_place(graph, options.after);
  const ValueType recorded = from->type();
  from->set_type(type_of(model, *from));
  Rollback rollback(graph);
  try {
    LayerContext context(graph, model.opset(), options.seed);
    context.set_init(options.init);
    graph.set_outputs(with_output(graph, from, add_layers(context, layers, from)));
  } catch (...) {
    from->set_type(recorded);
    throw;
  }
  rollback.keep();
  declare(*from);
}

namespace {

/// Where layers are put: behind `value`, for all its readers or for one.
struct Place {
  Value* value;
  Node* before;
  std::optional<Use> reader;
};

Place find_before(const Graph& graph, const std::string& name) {
  Node* const node = find_value(graph, "insert", name)->producer();
  if (node == nullptr) {
    fail(ErrorKind::argument, "insert: no node computes '", name, "'; say after '", name, "'");
  }
  for (int i = 0; i < node->input_count(); ++i) {
    Value* const input = node->input(i);
    if (input == nullptr || &input->graph() != &graph || constant_behind(input) != nullptr) {
      continue;
    }
    return {input, node, Use{node, i}};
  }
  fail(ErrorKind::argument, "insert: all inputs of ", node->label(), " are known before the run");
}

Place find_after(const Graph& graph, const std::string& name) {
  Value* const value = find_value(graph, "insert", name);
  if (value->is_initializer()) {
    fail(ErrorKind::argument, "insert: '", name, "' is an initializer");
  }
  const auto& nodes = graph.nodes();
  Node* const first = nodes.empty() ? nullptr : nodes.front().get();
  return {value, value->producer() == nullptr ? first : graph.next(value->producer()), {}};
}

void insert_into(Model& model, const std::vector<Layer>& layers, const InsertOptions& options) {
  Graph& graph = model.graph();
  const Place place = options.before.empty() ? find_after(graph, options.after)
                                             : find_before(graph, options.before);
  place.value->set_type(type_of(model, *place.value));
  LayerContext context(graph, model.opset(), options.seed);
  context.set_init(options.init);
  context.insert_before(place.before);
  const std::size_t readers = place.value->uses().size();
  Value* const result = add_layers(context, layers, place.value);
  if (place.reader) {
    place.reader->node->set_input(place.reader->index, result);
  } else {
    // What was added since stands behind the readers that there were.
    const std::span<const Use> uses = place.value->uses();
    const std::vector<Use> added(uses.begin() + static_cast<std::ptrdiff_t>(readers), uses.end());
    graph.replace_all_uses(place.value, result);
    for (const Use& use : added) use.node->set_input(use.index, place.value);
    declare(*place.value);
  }
  retype_behind(model, *result);
}

}  // namespace

void insert(Model& model, const std::vector<Layer>& layers, const InsertOptions& options) {
  if (layers.empty()) fail(ErrorKind::argument, "insert: no layer is given");
  if (options.after.empty() == options.before.empty()) {
    fail(ErrorKind::argument, "insert: wanted one place, after a value or before a node");
  }
  Model copy = model.clone();
  insert_into(copy, layers, options);  // what throws, throws for the copy
  insert_into(model, layers, options);
}

}  // namespace graft::edit
