#include <algorithm>
#include <set>
#include <unordered_set>

#include "core/graph/edit.h"

namespace graft::edit {
namespace {

using Ints = std::vector<std::int64_t>;

/// The graph inputs that have a batch, what it was and what it becomes.
struct Change {
  std::vector<Value*> inputs;
  std::optional<std::int64_t> old_number;
  std::set<std::string> old_symbols;
  Dim batch;
};

/// A Reshape and the target that it gets.
struct Patch {
  Node* node;
  Ints target;
};

/// What follows from the changed inputs.
struct Affected {
  std::unordered_set<const Value*> dependent;  // computed from an input, be it by its shape
  std::unordered_set<const Value*> carrying;   // the same, but not by way of Shape or Size
  std::vector<Value*> in_order;                // the dependent values
  std::vector<Node*> reshapes;                 // of data that carries the batch
};

std::string fresh_symbol(const Graph& graph) {
  std::set<std::string> taken;
  const auto take = [&](const Value* value) {
    if (value == nullptr || !value->shape()) return;
    for (const Dim& dim : *value->shape()) taken.insert(dim.symbol());
  };
  for (const Value* input : graph.inputs()) take(input);
  for (const auto& node : graph.nodes()) {
    for (int i = 0; i < node->output_count(); ++i) take(node->output(i));
  }
  std::string symbol = "N";
  for (int i = 1; taken.contains(symbol); ++i) symbol = "N" + std::to_string(i);
  return symbol;
}

Change plan_change(const Graph& graph, std::optional<std::int64_t> batch) {
  if (batch && *batch < 1) fail(ErrorKind::argument, "set_batch: batch ", *batch, " is below 1");
  Change change;
  for (Value* input : graph.inputs()) {
    if (input->is_initializer() || !input->shape() || input->shape()->rank() == 0) continue;
    const Dim& first = (*input->shape())[batch_axis(graph, *input)];
    if (first.is_known() && change.old_number.value_or(first.value()) != first.value()) {
      fail(ErrorKind::argument, "set_batch: '", input->name(), "' starts with ", first.value(),
           ", another input with ", *change.old_number, "; which is the batch is not clear");
    }
    if (first.is_known()) change.old_number = first.value();
    if (!first.symbol().empty()) change.old_symbols.insert(first.symbol());
    change.inputs.push_back(input);
  }
  if (change.inputs.empty()) {
    fail(ErrorKind::argument, "set_batch: no input has a known rank above 0");
  }
  if (batch) {
    change.batch = *batch;
  } else {
    change.batch =
        Dim(change.old_symbols.empty() ? fresh_symbol(graph) : *change.old_symbols.begin());
  }
  return change;
}

bool reads_any(const Node& node, const std::unordered_set<const Value*>& values) {
  bool found = false;
  for_each_read(node, [&](const Value& value) { found = found || values.contains(&value); });
  return found;
}

void collect(const Graph& graph, Affected& affected) {
  const auto mark = [&](Value* value, bool carries) {
    affected.dependent.insert(value);
    if (carries) affected.carrying.insert(value);
    affected.in_order.push_back(value);
  };
  for (const auto& node : graph.nodes()) {
    if (!reads_any(*node, affected.dependent)) continue;
    const bool carries =
        !node->is("Shape") && !node->is("Size") && reads_any(*node, affected.carrying);
    if (node->is("Reshape") && node->input(0) != nullptr &&
        affected.carrying.contains(node->input(0))) {
      affected.reshapes.push_back(node.get());
    }
    for_each_body(*node, [&](Graph& body) {
      for (Value* input : body.inputs()) mark(input, carries);
      collect(body, affected);
    });
    for (int i = 0; i < node->output_count(); ++i) {
      if (node->output(i) != nullptr) mark(node->output(i), carries);
    }
  }
}

/// The target of a Reshape when it is a constant; before opset 5 it is an attribute.
std::optional<Ints> constant_target(const Node& node) {
  if (node.attributes.has("shape")) return node.attributes.get_ints("shape");
  const Value* const target = node.input(1);
  if (target == nullptr) return std::nullopt;
  if (target->is_initializer()) return to_int64(target->initializer());
  const Node* const producer = target->producer();
  if (producer == nullptr || !producer->is("Constant")) return std::nullopt;
  if (producer->attributes.has("value_ints")) return producer->attributes.get_ints("value_ints");
  const Tensor tensor = producer->attributes.get_tensor("value");
  return tensor.defined() ? std::optional(to_int64(tensor)) : std::nullopt;
}

bool starts_with_batch(const Value& value, std::int64_t batch) {
  return value.shape() && value.shape()->rank() > 0 && (*value.shape())[0] == Dim(batch);
}

/// The target that takes any batch; nullopt when the old one does already.
std::optional<Ints> free_target(const Node& node, Ints target, std::int64_t old_batch) {
  if (target.empty()) return std::nullopt;
  const bool is_fixed = std::ranges::all_of(target, [](std::int64_t dim) { return dim > 0; });
  const bool copies = starts_with_batch(*node.input(0), old_batch);
  if (target[0] == old_batch) {
    if (std::ranges::find(target, -1) == target.end()) {
      target[0] = -1;
      return target;
    }
    if (copies && node.attributes.get_int("allowzero", 0) == 0) {
      target[0] = 0;
      return target;
    }
  } else if (!is_fixed || !copies) {
    return std::nullopt;
  }
  fail(ErrorKind::unsupported, "set_batch: ", node.label(), " turns ", node.input(0)->type(),
       " into the constant shape ", text(SymShape(std::vector<Dim>(target.begin(), target.end()))),
       ", which holds the batch ", old_batch, "; export the model with a free batch instead");
}

std::vector<Patch> plan_patches(const Affected& affected, std::int64_t old_batch) {
  std::vector<Patch> patches;
  for (Node* node : affected.reshapes) {
    const std::optional<Ints> target = constant_target(*node);
    if (!target) continue;
    if (auto freed = free_target(*node, *target, old_batch)) patches.push_back({node, *freed});
  }
  return patches;
}

void apply(const Patch& patch) {
  Node& node = *patch.node;
  if (node.attributes.has("shape")) {
    node.attributes.set({"shape", patch.target});
    return;
  }
  Value* const old = node.input(1);
  const Tensor tensor =
      Tensor::from(Shape{static_cast<std::int64_t>(patch.target.size())}, patch.target);
  if (old->is_initializer() && old->uses().size() == 1 && !old->is_graph_output() &&
      old->dtype() == DType::i64) {
    old->set_initializer(tensor);
    return;
  }
  Graph& graph = node.graph();
  Node* const constant = graph.add_node("Constant", "", {}, {graph.unique_name(old->name())},
                                        {{"value", tensor}}, &node);
  constant->output()->set_type({DType::i64, SymShape(tensor.shape())});
  node.set_input(1, constant->output());
  if (old->is_unused() && old->producer() != nullptr) old->graph().remove(old->producer());
}

/// `is_changed`: the value is one of change.inputs, whose numbers beyond the first dim are true
/// still.
void update_type(Value& value, const Change& change, bool is_changed) {
  if (!value.shape()) return;
  ValueType type = value.type();
  for (int axis = 0; axis < type.shape->rank(); ++axis) {
    Dim& dim = (*type.shape)[axis];
    if (!dim.symbol().empty() && change.old_symbols.contains(dim.symbol())) dim = change.batch;
    if (is_changed || !dim.is_known() || !change.old_number) continue;
    const std::int64_t old = *change.old_number;
    if (axis == 0 || (old > 1 ? dim.value() % old == 0 : dim.value() == old)) dim = Dim();
  }
  value.set_type(std::move(type));
}

enum class Baked { freed, kept };

void set_batch(Model& model, std::optional<std::int64_t> batch, Baked baked) {
  const Change change = plan_change(model.graph(), batch);
  std::vector<int> axes;  // found before any type changes
  for (const Value* input : change.inputs) axes.push_back(batch_axis(model.graph(), *input));
  bool has_it = true;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    has_it = has_it && (*change.inputs[i]->shape())[axes[i]] == change.batch;
  }
  if (has_it) return;
  Affected affected;
  for (const Value* input : change.inputs) affected.dependent.insert(input);
  affected.carrying = affected.dependent;
  collect(model.graph(), affected);
  std::vector<Patch> patches;
  if (baked == Baked::freed && change.old_number && change.batch != Dim(*change.old_number)) {
    patches = plan_patches(affected, *change.old_number);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Value* const input = change.inputs[i];
    update_type(*input, change, true);
    ValueType type = input->type();
    (*type.shape)[axes[i]] = change.batch;
    input->set_type(std::move(type));
  }
  for (Value* value : affected.in_order) update_type(*value, change, false);
  for (const Patch& patch : patches) apply(patch);
}

}  // namespace

int batch_axis(const Graph& graph, const Value& input) {
  const auto has_rank = [](const Value* value) {
    return !value->is_initializer() && value->shape() && value->shape()->rank() > 0;
  };
  const auto first = std::ranges::find_if(graph.inputs(), has_rank);
  if (first == graph.inputs().end()) return 0;
  const Dim batch = (*(*first)->shape())[0];
  const SymShape& shape = *input.shape();
  const bool is_unnamed = !batch.is_known() && batch.symbol().empty();
  if (is_unnamed && !shape[0].is_known()) return 0;
  if (shape[0] == batch || std::ranges::count(shape, batch) != 1) return 0;
  return static_cast<int>(std::ranges::find(shape, batch) - shape.begin());
}

void set_batch(Model& model, std::optional<std::int64_t> batch) {
  set_batch(model, batch, Baked::freed);
}

void set_batch_types(Model& model, std::optional<std::int64_t> batch) {
  set_batch(model, batch, Baked::kept);
}

}  // namespace graft::edit
