#pragma once

#include <string_view>
#include <vector>

#include "tests/core/ops/call_op.h"

namespace graft::testing {

/// Runs a standard op that is written in simpler ones.
inline std::vector<Tensor> call_decomposed(std::string_view op, const std::vector<Tensor>& inputs,
                                           Attributes attributes = {}, int outputs = 1) {
  OneNode one(op, "", inputs, outputs, std::move(attributes));
  std::vector<Value*> values;
  for (int i = 0; i < outputs; ++i) values.push_back(one.node->output(i));
  one.graph.set_outputs(values);
  passes::decompose(one.graph);
  passes::settle(one.graph);
  std::vector<Tensor> results;
  for (const Value* output : one.graph.outputs()) results.push_back(output->initializer());
  return results;
}

}  // namespace graft::testing
