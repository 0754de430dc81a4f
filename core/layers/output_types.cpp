#include "core/layers/output_types.h"

#include <algorithm>

#include "core/passes/pass.h"

namespace graft::edit {
namespace {

bool says_all(const ValueType& type) {
  return type.is_container || (type.dtype != DType::undefined && type.shape &&
                               std::ranges::all_of(*type.shape, [](const Dim& dim) {
                                 return dim.is_known() || !dim.symbol().empty();
                               }));
}

void complete(ValueType& type, const ValueType& found) {
  if (type.dtype == DType::undefined) type.dtype = found.dtype;
  if (!found.shape) return;
  if (!type.shape) type.shape = found.shape;
  if (type.shape->rank() != found.shape->rank()) return;
  for (int i = 0; i < type.shape->rank(); ++i) {
    Dim& dim = (*type.shape)[i];
    if (!dim.is_known() && dim.symbol().empty()) dim = (*found.shape)[i];
  }
}

}  // namespace

std::vector<ValueType> inferred_output_types(const Model& model) {
  Model copy = model.clone();
  passes::upgrade_opset(copy);
  passes::settle(copy.graph());
  std::vector<ValueType> types;
  for (const Value* output : copy.graph().outputs()) types.push_back(output->type());
  return types;
}

void complete_output_types(Model& model) {
  const std::vector<Value*>& outputs = model.graph().outputs();
  if (std::ranges::all_of(outputs, says_all, &Value::type)) return;
  std::vector<ValueType> found;
  try {
    found = inferred_output_types(model);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (found[i].is_container) continue;
    ValueType type = outputs[i]->type();
    complete(type, found[i]);
    outputs[i]->set_type(std::move(type));
  }
}

}  // namespace graft::edit
