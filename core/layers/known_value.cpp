#include "core/layers/known_value.h"

#include "core/graph/edit.h"
#include "core/ops/infer.h"
#include "core/passes/microsoft.h"
#include "core/passes/pass.h"
#include "core/passes/pipeline.h"

namespace graft::edit {

namespace {

/// Of the only output.
Tensor folded(Graph& graph, std::string_view name) {
  passes::fold_constants(graph);
  const Tensor known = constant_of(graph.outputs().at(0));
  if (known.defined()) return known;
  fail(ErrorKind::unsupported, "'", name, "' is not known before the model runs");
}

}  // namespace

Tensor known_value(const Model& model, const Value& value) {
  if (value.is_initializer()) return value.initializer().to(cpu());
  Model copy = model.clone();
  truncate(copy, value.name());
  passes::PassContext context{.device = cpu(), .model = &copy};
  passes::run_passes(passes::kNewestForm, copy.graph(), context);
  return folded(copy.graph(), value.name());
}

Tensor known_weight(const Model& model, const Node& layer) {
  if (!layer.is("MatMulNBits", "com.microsoft")) return known_value(model, *layer.input(1));
  ValueMap map;
  Model copy = model.clone(&map);
  Graph& graph = copy.graph();
  Node* const node = map.at(layer.output())->producer();
  Builder builder(graph, node);
  Value* const weight = passes::unpacked_weight(*node, builder).value();
  graph.set_outputs({weight});
  remove_unused(graph);
  return folded(graph, layer.label());
}

}  // namespace graft::edit
