#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

constexpr NotDifferentiable kSequences{
    "it works on sequences, whose lengths are known in a run only"};
constexpr NotDifferentiable kOptionals{"whether it has an element is known in a run only"};

void infer_container(InferContext& context) {
  if (Value* const output = context.node().output()) output->set_type({.is_container = true});
}

/// A tensor of which nothing is known before the run.
void infer_any(InferContext& context) {
  context.set_output(0, DType::undefined);
}

void infer_length(InferContext& context) {
  context.set_output(0, DType::i64, SymShape{});
}

void infer_has_element(InferContext& context) {
  context.set_output(0, DType::boolean, SymShape{});
}

/// An optional that has an element is that element.
void infer_element(InferContext& context) {
  context.copy_type(0);
}

void infer_optional(InferContext& context) {
  if (context.has_input(0)) return context.copy_type(0);
  infer_container(context);
}

/// Sequences have no numbers that the sweep could make: see sequence_test.cpp.
OpDef row(std::string_view name, int since, std::vector<Param> inputs,
          std::vector<AttributeDef> attributes, Infer infer, NotDifferentiable why) {
  return {.name = name,
          .since = {{since}},
          .inputs = std::move(inputs),
          .outputs = {{"output"}},
          .attributes = std::move(attributes),
          .infer = infer,
          .is_dynamic = true,
          .backward = why,
          .samples = no_samples};
}

}  // namespace

/// Ops that make sequences and optionals, and take them apart.
void register_sequence(OpRegistry& registry) {
  const Param sequence{"input_sequence"};
  const Param position{"position", Arity::optional};
  registry.add(row("SequenceEmpty", 11, {}, {{"dtype", AttributeType::integer}}, infer_container,
                   kSequences));
  registry.add(
      row("SequenceConstruct", 11, {{"inputs", Arity::variadic}}, {}, infer_container, kSequences));
  registry.add(
      row("SequenceInsert", 11, {sequence, {"tensor"}, position}, {}, infer_container, kSequences));
  registry.add(row("SequenceErase", 11, {sequence, position}, {}, infer_container, kSequences));
  registry.add(row("SequenceAt", 11, {sequence, {"position"}}, {}, infer_any, kSequences));
  registry.add(row("SequenceLength", 11, {sequence}, {}, infer_length, kSequences));
  registry.add(row("SplitToSequence", 11, {{"input"}, {"split", Arity::optional}},
                   {{"axis", AttributeType::integer}, {"keepdims", AttributeType::integer}},
                   infer_container, kSequences));
  registry.add(row("ConcatFromSequence", 11, {sequence},
                   {{"axis", AttributeType::integer, true}, {"new_axis", AttributeType::integer}},
                   infer_any, kSequences));
  registry.add(row("Optional", 15, {{"input", Arity::optional}}, {}, infer_optional, kOptionals));
  registry.add(row("OptionalHasElement", 15, {{"input", Arity::optional}}, {}, infer_has_element,
                   kOptionals));
  registry.add(row("OptionalGetElement", 15, {{"input"}}, {}, infer_element, kOptionals));
}

}  // namespace graft
