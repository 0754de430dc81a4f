#include <algorithm>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

const Graph* body_attribute(const InferContext& context, std::string_view attribute) {
  const Attribute* const found = context.attributes().find(attribute);
  if (found == nullptr) return nullptr;
  const auto* const graph = std::get_if<std::shared_ptr<Graph>>(&found->value);
  return graph == nullptr ? nullptr : graph->get();
}

const ValueType& output_type(const InferContext& context, const Graph* body, int index) {
  static const ValueType unknown;
  if (body == nullptr) return unknown;
  if (index >= static_cast<int>(body->outputs().size())) {
    context.fail(ErrorKind::model, "its body has ", body->outputs().size(),
                 " outputs, wanted over ", index);
  }
  return body->outputs()[static_cast<std::size_t>(index)]->type();
}

/// What is known whichever of two values it is.
ValueType common(const ValueType& a, const ValueType& b) {
  ValueType result;
  result.is_container = a.is_container && b.is_container;
  if (a.dtype == b.dtype) result.dtype = a.dtype;
  if (!a.shape || !b.shape || a.shape->rank() != b.shape->rank()) return result;
  result.shape = a.shape;
  for (int i = 0; i < a.shape->rank(); ++i) {
    if (!(*a.shape)[i].same_as((*b.shape)[i])) (*result.shape)[i] = Dim();
  }
  return result;
}

void set_type(const InferContext& context, int index, ValueType type) {
  Value* const output = context.node().output(index);
  if (output != nullptr) output->set_type(std::move(type));
}

void infer_if(InferContext& context) {
  const Graph* const chosen = body_attribute(context, "then_branch");
  const Graph* const other = body_attribute(context, "else_branch");
  for (int i = 0; i < context.node().output_count(); ++i) {
    set_type(context, i, common(output_type(context, chosen, i), output_type(context, other, i)));
  }
}

/// How far the inputs of a body, as the file declares them, are what they will be: what was
/// inferred of the body holds for those. Files often have the shapes of another batch.
class Declared {
 public:
  /// Of one input; `given`: what it is at first, null where that is not known.
  void compare(const Value& input, const SymShape* given) {
    const auto& shape = input.shape();
    if (!shape) return;  // so nothing was inferred of it
    has_ranks_ = has_ranks_ && given != nullptr && given->rank() == shape->rank();
    if (!has_ranks_) return;
    for (int i = 0; i < shape->rank(); ++i) {
      has_dims_ = has_dims_ && (!(*shape)[i].is_known() || (*shape)[i].same_as((*given)[i]));
    }
  }
  void compare_carried(const Value& input, const SymShape* given, const ValueType& next) {
    compare(input, given);
    compare(input, next.shape ? &*next.shape : nullptr);
  }
  /// What is known of an output of the body.
  ValueType known(ValueType output) const {
    if (!has_ranks_) output.shape.reset();
    if (!has_dims_ && output.shape) {
      output.shape = SymShape(std::vector<Dim>(static_cast<std::size_t>(output.shape->rank())));
    }
    return output;
  }

 private:
  bool has_ranks_ = true;
  bool has_dims_ = true;
};

const Value* body_input(const Graph* body, int index) {
  if (body == nullptr || index >= static_cast<int>(body->inputs().size())) return nullptr;
  return body->inputs()[static_cast<std::size_t>(index)];
}

/// A collected output has one more axis; `dim` is its length.
ValueType collected(ValueType entry, std::int64_t axis, const Dim& dim) {
  entry.is_container = false;
  if (!entry.shape) return entry;
  std::vector<Dim> dims = entry.shape->dims();
  const int at = normalize_axis(axis, static_cast<int>(dims.size()) + 1, "scan output");
  dims.insert(dims.begin() + at, dim);
  entry.shape = SymShape(std::move(dims));
  return entry;
}

/// Shapes of carried values may change from turn to turn; their element types do not.
void infer_loop(InferContext& context) {
  const Graph* const body = body_attribute(context, "body");
  const int carried = std::max(context.input_count() - 2, 0);
  Declared declared;
  for (int i = 0; i < carried; ++i) {
    const Value* const input = body_input(body, i + 2);
    if (input == nullptr) continue;
    declared.compare_carried(*input, context.shape(i + 2), output_type(context, body, i + 1));
  }
  for (int i = 0; i < context.node().output_count(); ++i) {
    if (i >= carried) {
      set_type(context, i, collected(declared.known(output_type(context, body, i + 1)), 0, {}));
      continue;
    }
    const Value* const start = context.node().input(i + 2);
    const bool is_container = start != nullptr && start->type().is_container;
    set_type(context, i,
             {.dtype = context.dtype(i + 2), .shape = {}, .is_container = is_container});
  }
}

std::int64_t entry(const std::vector<std::int64_t>& list, std::size_t index) {
  return index < list.size() ? list[index] : 0;
}

Declared compare_scan(const InferContext& context, const Graph* body, int states) {
  const std::vector<std::int64_t> axes = context.attributes().get_ints("scan_input_axes");
  Declared declared;
  for (int i = 0; i < context.input_count(); ++i) {
    const Value* const input = body_input(body, i);
    if (input == nullptr) continue;
    const SymShape* const given = context.shape(i);
    if (i < states) {
      declared.compare_carried(*input, given, output_type(context, body, i));
    } else if (given == nullptr) {
      declared.compare(*input, nullptr);
    } else {
      std::vector<Dim> dims = given->dims();
      const std::int64_t axis = entry(axes, static_cast<std::size_t>(i - states));
      dims.erase(dims.begin() + normalize_axis(axis, given->rank(), "scan input"));
      const SymShape slice(std::move(dims));
      declared.compare(*input, &slice);
    }
  }
  return declared;
}

void infer_scan(InferContext& context) {
  const Graph* const body = body_attribute(context, "body");
  const std::int64_t scanned = context.attributes().get_int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > context.input_count()) {
    context.fail(ErrorKind::model, "num_scan_inputs is ", scanned, " of ", context.input_count(),
                 " inputs");
  }
  const int states = context.input_count() - static_cast<int>(scanned);
  const SymShape* const first = context.shape(states);
  Dim turns;
  if (first != nullptr) {
    const auto axis = entry(context.attributes().get_ints("scan_input_axes"), 0);
    turns = (*first)[normalize_axis(axis, first->rank(), "scan input")];
  }
  const Declared declared = compare_scan(context, body, states);
  const std::vector<std::int64_t> axes = context.attributes().get_ints("scan_output_axes");
  for (int i = 0; i < context.node().output_count(); ++i) {
    const ValueType inner = declared.known(output_type(context, body, i));
    const auto axis = i < states ? 0 : entry(axes, static_cast<std::size_t>(i - states));
    set_type(context, i, i < states ? ValueType{context.dtype(i)} : collected(inner, axis, turns));
  }
}

void infer_sequence_map(InferContext& context) {
  for (int i = 0; i < context.node().output_count(); ++i) {
    set_type(context, i, {.is_container = true});
  }
}

/// Scan of opset 8 runs once for each entry of a batch: a Scan over axis 0 of everything whose body
/// is the Scan in its form of today. The outer one carries nothing; states come out collected.
void upgrade_scan(Node& node, std::int64_t from, Builder& builder) {
  constexpr std::int64_t kWithoutBatch = 9;
  if (from >= kWithoutBatch) return;
  if (node.input(0) != nullptr) {
    fail(ErrorKind::unsupported, node.label(), ": sequence_lens are not supported");
  }
  const std::int64_t scanned = node.attributes.get_int("num_scan_inputs", 0);
  auto outer = std::make_shared<Graph>("batch", &node.graph());
  std::vector<Value*> arguments;
  for (int i = 1; i < node.input_count(); ++i) {
    const DType dtype = node.input(i) == nullptr ? DType::undefined : node.input(i)->dtype();
    arguments.push_back(outer->add_input(
        node.graph().unique_name("batch_entry_" + std::to_string(i)), {dtype, std::nullopt}));
  }
  ValueMap nothing_mapped;
  Attributes attributes;
  for (const Attribute& attribute : node.attributes) {
    const bool is_directions = attribute.name == "directions";
    attributes.set({is_directions ? "scan_input_directions" : attribute.name,
                    clone_value(attribute.value, nothing_mapped, outer.get())});
  }
  std::vector<std::string> names;
  for (int i = 0; i < node.output_count(); ++i) {
    names.push_back(node.graph().unique_name("batch_result_" + std::to_string(i)));
  }
  const Node* const inner = outer->add_node("Scan", "", arguments, names, std::move(attributes));
  for (int i = 0; i < inner->output_count(); ++i) outer->add_output(inner->output(i));
  if (scanned < 1) fail(ErrorKind::model, node.label(), ": num_scan_inputs is ", scanned);
  const std::vector<Value*> inputs(node.inputs().begin() + 1, node.inputs().end());
  const Node* const replacement =
      builder.node("Scan", "", inputs, node.output_count(),
                   {{"body", outer}, {"num_scan_inputs", static_cast<int>(inputs.size())}});
  for (int i = 0; i < node.output_count(); ++i) {
    Value* const output = node.output(i);
    if (output == nullptr) continue;
    const std::string name = output->name();
    builder.graph().rename(output, builder.graph().unique_name(name + "_of_opset_8"));
    builder.graph().rename(replacement->output(i), name);
    builder.graph().replace_all_uses(output, replacement->output(i));
  }
}

/// The sweep makes tensors only; bodies are tested by tests/core/runtime/control_flow_test.cpp.
constexpr NotDifferentiable kCondition{
    "its condition depends on data; gradients pass only where one branch is known before the run"};
constexpr NotDifferentiable kTurns{
    "the number of its turns depends on data, or is too large to unroll; gradients pass only "
    "through loops that are unrolled before the run"};

}  // namespace

/// If, Loop, Scan, SequenceMap: ops with bodies, which core/runtime/control_flow.cpp runs.
void register_control_flow(OpRegistry& registry) {
  registry.add({.name = "If",
                .since = {{1}, {11}, {13}, {16}, {19}, {21}, {23}, {24}, {25}},
                .inputs = {{"cond"}},
                .outputs = {{"outputs", Arity::variadic}},
                .attributes = {{"then_branch", AttributeType::graph, true},
                               {"else_branch", AttributeType::graph, true}},
                .infer = infer_if,
                .is_dynamic = true,
                .backward = kCondition,
                .samples = no_samples});
  registry.add({.name = "Loop",
                .since = {{1}, {11}, {13}, {16}, {19}, {21}, {23}, {24}, {25}},
                .inputs = {{"M", Arity::optional},
                           {"cond", Arity::optional},
                           {"v_initial", Arity::variadic}},
                .outputs = {{"v_final_and_scan_outputs", Arity::variadic}},
                .attributes = {{"body", AttributeType::graph, true}},
                .infer = infer_loop,
                .is_dynamic = true,
                .backward = kTurns,
                .samples = no_samples});
  registry.add({.name = "Scan",
                .since = {{8}, {9, "no batch axis"}, {11}, {16}, {19}, {21}, {23}, {24}, {25}},
                .inputs = {{"initial_state_and_scan_inputs", Arity::variadic}},
                .outputs = {{"final_state_and_scan_outputs", Arity::variadic}},
                .attributes = {{"body", AttributeType::graph, true},
                               {"num_scan_inputs", AttributeType::integer, true},
                               {"scan_input_axes", AttributeType::integers},
                               {"scan_input_directions", AttributeType::integers},
                               {"scan_output_axes", AttributeType::integers},
                               {"scan_output_directions", AttributeType::integers}},
                .infer = infer_scan,
                .is_dynamic = true,
                .upgrade = upgrade_scan,
                .backward = kTurns,
                .samples = no_samples});
  registry.add({.name = "SequenceMap",
                .since = {{17}},
                .inputs = {{"input_sequence"}, {"additional_inputs", Arity::variadic}},
                .outputs = {{"out_sequence", Arity::variadic}},
                .attributes = {{"body", AttributeType::graph, true}},
                .infer = infer_sequence_map,
                .is_dynamic = true,
                .backward = NotDifferentiable{"it computes sequences"},
                .samples = no_samples});
}

}  // namespace graft
