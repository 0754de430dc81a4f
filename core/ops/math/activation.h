#pragma once

#include <utility>

#include "core/ops/kernels/elementwise_samples.h"
#include "core/ops/registry.h"

namespace graft {

/// Selu's defaults.
inline constexpr float kSeluAlpha = 1.67326319217681884765625F;
inline constexpr float kSeluGamma = 1.05070102214813232421875F;

/// Row of an activation with one input X and one output Y of its type.
inline OpDef activation_row(std::string_view name, std::vector<Since> since,
                            std::vector<AttributeDef> attributes, Rule rule, Samples samples) {
  return {.name = name,
          .since = std::move(since),
          .inputs = {{"X"}},
          .outputs = {{"Y"}},
          .attributes = std::move(attributes),
          .infer = infer_same,
          .aliases = {{0, 0, AliasKind::in_place}},
          .layout = kElementwise,
          .mixed_precision = kFollows,
          .backward = rule,
          .samples = samples};
}

inline void infer_activation_gradient(InferContext& context) {
  context.require_same_dtype({0, 1});
  const auto shape = broadcast_inputs(context);
  const SymShape* const saved = context.shape(0);
  const SymShape* const gradient = context.shape(1);
  if (saved != nullptr && gradient != nullptr && *saved != *gradient && saved->known() &&
      gradient->known()) {
    context.fail(ErrorKind::shape, "the gradient's shape is ", *gradient, ", wanted ", *saved);
  }
  context.set_output(0, context.dtype(0), shape);
}

/// Row of the fused gradient of an activation: dX from what was saved (X or Y) and dY.
inline OpDef activation_gradient_row(std::string_view name, std::string_view saved,
                                     std::vector<AttributeDef> attributes, Lowering lower,
                                     Samples samples) {
  return {.name = name,
          .domain = kInternalDomain,
          .inputs = {{saved}, {"dY"}},
          .outputs = {{"dX"}},
          .attributes = std::move(attributes),
          .infer = infer_activation_gradient,
          .aliases = {{0, 0, AliasKind::in_place}, {0, 1, AliasKind::in_place}},
          .layout = kElementwise,
          .lower = lower,
          .backward = NotDifferentiable{"second derivatives of activations are not supported"},
          .samples = samples};
}

/// Registers an activation whose gradient is one op, and that.
inline void add_with_gradient(OpRegistry& registry, OpDef activation, OpDef gradient) {
  activation.is_activation = true;
  registry.add(std::move(activation));
  registry.add(std::move(gradient));
}

/// Samples of a fused gradient: those of the activation, with a second input dY.
inline std::vector<Sample> gradient_samples(std::vector<Sample> samples) {
  for (Sample& sample : samples) {
    SampleInput gradient{.shape = sample.inputs.front().shape};
    sample.inputs.insert(sample.inputs.begin() + 1, std::move(gradient));
    sample.no_gradient_check.clear();
  }
  return samples;
}

}  // namespace graft
