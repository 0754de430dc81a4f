#pragma once

#include <string_view>
#include <vector>

#include "core/ops/gradient.h"
#include "core/ops/registry.h"
#include "tests/core/ops/call_op.h"

namespace graft::testing {

/// What the rule of a standard op gives for inputs and the gradient of output 0, one tensor an
/// input; not defined where no gradient flows. For ties and kinks, which differences cannot test.
inline std::vector<Tensor> rule_gradients(std::string_view op, const std::vector<Tensor>& inputs,
                                          const Tensor& output_gradient,
                                          Attributes attributes = {}) {
  OneNode one(op, "", inputs, 1, std::move(attributes));
  Builder builder(one.graph);
  const Expr dy = builder.expr(builder.constant(output_gradient, "dy"));
  const Gradient gradient(*one.node, builder, {dy}, std::vector<bool>(inputs.size(), true));
  const Rule& rule = *OpRegistry::instance().get(*one.node).backward.rule();
  std::vector<Expr> results = rule(gradient);
  results.resize(inputs.size());
  std::vector<Value*> outputs;
  for (const Expr& result : results) {
    if (result) outputs.push_back(result.value());
  }
  one.graph.set_outputs(outputs);
  passes::fold_constants(one.graph);
  std::vector<Tensor> tensors;
  std::size_t next = 0;
  for (const Expr& result : results) {
    tensors.push_back(result ? one.graph.outputs()[next++]->initializer() : Tensor());
  }
  return tensors;
}

}  // namespace graft::testing
