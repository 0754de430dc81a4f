#include "core/layers/fix_input.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "core/base/closest.h"
#include "core/graph/edit.h"
#include "core/ops/infer.h"
#include "core/passes/pass.h"
#include "core/passes/pipeline.h"

namespace graft::edit {
namespace {

Value* find_input(const Graph& graph, std::string_view name) {
  std::vector<std::string> names;
  for (Value* input : graph.inputs()) {
    if (input->name() == name) return input;
    names.push_back(input->name());
  }
  fail(ErrorKind::argument, "no input is called '", name, "'; inputs are: ", quoted_list(names));
}

void check_fits(const Value& input, const Tensor& value) {
  const ValueType& type = input.type();
  const std::optional<SymShape>& shape = type.shape;
  bool fits = !shape || shape->rank() == value.rank();
  for (int i = 0; fits && shape && i < shape->rank(); ++i) {
    fits = !(*shape)[i].is_known() || (*shape)[i].value() == value.shape()[i];
  }
  if (fits && type.dtype == value.dtype()) return;
  fail(fits ? ErrorKind::type : ErrorKind::shape, "input '", input.name(), "' is ", type, ", got ",
       describe(value));
}

void become_constant(Graph& graph, Value* input, const Tensor& value) {
  const std::string name = input->name();
  Value* const constant = graph.add_initializer(graph.unique_name(name + "_fixed"), value);
  constant->role = Role::constant;
  graph.replace_all_uses(input, constant);
  graph.remove_input(input);
  graph.rename(constant, name);
}

/// Gives each If whose condition folds to a constant that constant. Whether there was one.
bool settle_conditions(Model& model) {
  Model newest = model.clone();
  passes::PassContext context{.device = cpu(), .model = &newest};
  passes::run_passes(passes::kNewestForm, newest.graph(), context);
  passes::fold_constants(newest.graph());
  bool found = false;
  for (const auto& node : model.graph().nodes()) {
    if (!node->is("If") || node->input(0) == nullptr || node->input(0)->is_initializer()) continue;
    const Tensor condition = constant_of(newest.graph().find(node->input(0)->name()));
    if (!condition.defined()) continue;
    Graph& graph = model.graph();
    node->set_input(0, graph.add_initializer(graph.unique_name("condition"), condition));
    found = true;
  }
  return found;
}

bool holds_weights(const Graph& body) {
  const auto is_weight = [](const Tensor& tensor) {
    return tensor.defined() && is_float(tensor.dtype()) && tensor.size() > 1;
  };
  bool found = std::ranges::any_of(
      body.initializers(), [&](const Value* value) { return is_weight(value->initializer()); });
  for (const auto& node : body.nodes()) {
    const bool is_constant = node->is("Constant") && node->attributes.has("value");
    found = found || (is_constant && is_weight(node->attributes.get_tensor("value")));
    for_each_body(*node, [&](const Graph& inner) { found = found || holds_weights(inner); });
  }
  return found;
}

/// The graph inputs that a value is computed from.
void collect_inputs(const Value* value, std::unordered_set<const Value*>& seen,
                    std::vector<const Value*>& inputs) {
  std::vector<const Value*> open{value};
  while (!open.empty()) {
    const Value* const next = open.back();
    open.pop_back();
    if (!seen.insert(next).second) continue;
    if (next->is_graph_input() && !next->is_initializer()) inputs.push_back(next);
    if (next->producer() == nullptr) continue;
    for_each_read(*next->producer(), [&](const Value& read) { open.push_back(&read); });
  }
}

}  // namespace

void fix_input(Model& model, std::string_view input, const Tensor& value) {
  check_fits(*find_input(model.graph(), input), value);
  Model copy = model.clone();
  for (Model* one : {&copy, &model}) {  // what throws, throws for the copy
    become_constant(one->graph(), find_input(one->graph(), input), value);
    do {
      passes::choose_branches(one->graph());
    } while (settle_conditions(*one));
    remove_unused(one->graph());
  }
}

std::vector<const Value*> inputs_that_choose_weights(const Graph& graph) {
  std::vector<const Value*> inputs;
  std::unordered_set<const Value*> seen;
  for (const auto& node : graph.nodes()) {
    bool has_weights = false;
    for_each_body(*node, [&](const Graph& body) { has_weights |= holds_weights(body); });
    if (node->is("If") && has_weights) collect_inputs(node->input(0), seen, inputs);
  }
  return inputs;
}

}  // namespace graft::edit
