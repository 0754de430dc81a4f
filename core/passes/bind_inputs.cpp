#include "core/passes/pass.h"

namespace graft::passes {
namespace {

bool accepts(const ValueType& declared, const ValueType& given) {
  if (declared.dtype != DType::undefined && declared.dtype != given.dtype) return false;
  if (!declared.shape) return true;
  if (!given.shape || declared.shape->rank() != given.shape->rank()) return false;
  for (int axis = 0; axis < declared.shape->rank(); ++axis) {
    const Dim& want = (*declared.shape)[axis];
    // A name may recur for different sizes in real files, so names are not compared.
    if (want.is_known() && !want.same_as((*given.shape)[axis])) return false;
  }
  return true;
}

void forget_types(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for_each_body(*node, [](Graph& body) { forget_types(body); });
    for (int i = 0; i < node->output_count(); ++i) {
      Value* const output = node->output(i);
      if (output == nullptr || output->type().is_container) continue;
      output->set_type({output->dtype(), std::nullopt});
    }
  }
}

}  // namespace

std::vector<Value*> required_inputs(const Graph& graph) {
  std::vector<Value*> inputs;
  for (Value* input : graph.inputs()) {
    if (!input->is_initializer()) inputs.push_back(input);
  }
  return inputs;
}

void bind_inputs(Graph& graph, const std::vector<ValueType>& types) {
  const std::vector<Value*> inputs = required_inputs(graph);
  if (inputs.size() != types.size()) {
    fail(ErrorKind::argument, "the model has ", inputs.size(), " inputs, got ", types.size());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!accepts(inputs[i]->type(), types[i])) {
      fail(inputs[i]->dtype() == types[i].dtype ? ErrorKind::shape : ErrorKind::type, "input '",
           inputs[i]->name(), "' is ", inputs[i]->type(), ", got ", types[i]);
    }
    inputs[i]->set_type(types[i]);
  }
  forget_types(graph);
}

}  // namespace graft::passes
