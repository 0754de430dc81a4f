#include "core/runtime/inference.h"

#include <algorithm>
#include <span>

#include "core/passes/pipeline.h"
#include "core/runtime/residency.h"

namespace graft {

bool may_be_weight(const Value& initializer) {
  const auto says_shape = [](const Use& use) { return use.node->is("Resize") && use.index > 0; };
  const std::span<const Use> uses = initializer.uses();
  return is_float(initializer.dtype()) && initializer.initializer().rank() > 0 &&
         (uses.empty() || !std::ranges::all_of(uses, says_shape));
}

Model inference_form(const Model& model, bool weights_change, passes::PassLog* log) {
  Model copy = model.clone();
  const HostCopies host_copies(copy.graph());
  passes::PassContext context{.device = cpu(), .model = &copy, .log = log};
  passes::run_passes(passes::kNewestForm, copy.graph(), context);
  for (Value* initializer : copy.graph().initializers()) {
    initializer->is_variable = weights_change && may_be_weight(*initializer);
  }
  host_copies.give_back_variables(copy.graph());
  return copy;
}

std::unique_ptr<Graph> inference_graph(const Graph& graph, std::vector<ValueType> types,
                                       Device& device, passes::PassLog* log) {
  std::unique_ptr<Graph> copy = graph.clone();
  passes::PassContext context{.device = device, .input_types = std::move(types), .log = log};
  passes::run_passes(passes::kInference, *copy, context);
  return copy;
}

}  // namespace graft
