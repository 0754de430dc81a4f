#include "core/ops/registry.h"

namespace graft {
namespace {

/// One output an entry of `xs`, of the type of the input that gives it.
void infer_gradient(InferContext& context) {
  for (int i = 0; i < context.node().output_count(); ++i) {
    if (context.has_input(i)) context.copy_type(i, i);
  }
}

/// Kernels never see it: autograd/gradient_op.h turns it into ordinary nodes.
}  // namespace

/// ai.onnx.preview.training.Gradient: the derivative of a named value of the same graph.
void register_gradient_op(OpRegistry& registry) {
  registry.add({.name = "Gradient",
                .domain = "ai.onnx.preview.training",
                .since = {{1}},
                .inputs = {{"Inputs", Arity::variadic}},
                .outputs = {{"Outputs", Arity::variadic}},
                .attributes = {{"xs", AttributeType::texts, true},
                               {"y", AttributeType::text, true},
                               {"zs", AttributeType::texts}},
                .infer = infer_gradient,
                .is_dynamic = true,
                .backward = NotDifferentiable{"it is lowered for inference only"},
                .samples = no_samples});
}

}  // namespace graft
