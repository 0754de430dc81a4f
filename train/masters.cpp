#include "train/masters.h"

#include <algorithm>

#include "core/ops/builder.h"
#include "core/ops/infer.h"
#include "core/ops/registry.h"
#include "optim/state_names.h"

namespace graft {
namespace {

bool is_narrow(const Value* value) {
  return value != nullptr && is_half(value->dtype());
}

/// Lets all readers of a value read it as f32.
void widen(Graph& graph, Value* value, Node* before) {
  Builder builder(graph, before, "f32/");
  // The cast reads the value only once all others read the cast.
  Value* const wide = cast(builder.expr(value), DType::f32).value();
  graph.replace_all_uses(value, wide);
  wide->producer()->set_input(0, value);
}

Master make_master(Graph& graph, Value* parameter, StateTensors& state) {
  const Tensor& content = parameter->initializer();
  const std::string name = graph.unique_name(text(parameter->name(), ".", kMaster));
  const auto kept = state.find(name);
  Value* const value = graph.add_initializer(
      name,
      kept == state.end() ? content.to(cpu()).cast(DType::f32).to(content.device()) : kept->second);
  value->is_variable = true;
  state.try_emplace(name, value->initializer());
  graph.replace_all_uses(parameter, value);
  return {parameter->name(), content, value};
}

/// A node that gave 16 bits gives f32, or its readers read what it gives as f32.
void compute_wide(Graph& graph, Node& node) {
  if (node.is("Cast") && is_narrow(node.output())) {
    node.attributes.set({"to", static_cast<int>(DType::f32)});
  }
  infer(node);
  for (int i = 0; i < node.output_count(); ++i) {
    if (is_narrow(node.output(i))) widen(graph, node.output(i), graph.next(&node));
  }
}

/// What a node makes of a variable; null when it only reads it.
Value* updated(const Value* variable) {
  for (const Use& use : variable->uses()) {
    for (const Alias& alias : OpRegistry::instance().get(*use.node).aliases) {
      if (alias.kind == AliasKind::state && alias.input == use.index) {
        return use.node->output(alias.output);
      }
    }
  }
  return nullptr;
}

}  // namespace

std::vector<Master> add_masters(Graph& graph, StateTensors& state) {
  std::vector<Value*> halves;
  std::ranges::copy_if(graph.initializers(), std::back_inserter(halves), is_narrow);
  std::ranges::copy_if(graph.inputs(), std::back_inserter(halves),
                       [](const Value* v) { return is_narrow(v) && !v->is_initializer(); });
  if (std::ranges::none_of(halves, &Value::is_variable)) return {};
  Node* const first = graph.nodes().front().get();
  std::vector<Master> masters;
  for (Value* value : halves) {
    if (value->is_variable) {
      masters.push_back(make_master(graph, value, state));
    } else {
      widen(graph, value, first);
    }
  }
  for (Node* node = first; node != nullptr; node = graph.next(node)) compute_wide(graph, *node);
  return masters;
}

void write_back(Graph& graph, const std::vector<Master>& masters) {
  for (const Master& master : masters) {
    Value* const result = updated(master.value);
    if (result == nullptr) continue;
    Value* parameter = graph.find(master.parameter);
    if (parameter == nullptr) parameter = graph.add_initializer(master.parameter, master.content);
    parameter->is_variable = true;
    Builder builder(graph, nullptr, "update/");
    const Expr narrow = cast(builder.expr(result), parameter->dtype());
    call_internal("Assign", {builder.expr(parameter), narrow});
  }
}

}  // namespace graft
