#include "core/layers/output_types.h"

#include <algorithm>

#include "core/graph/edit.h"
#include "core/passes/pipeline.h"

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

void infer_types(Model& model) {
  passes::PassContext context{.device = cpu(), .model = &model};
  passes::run_passes(passes::kOutputTypes, model.graph(), context);
}

std::vector<ValueType> infer(Model model) {
  infer_types(model);
  std::vector<ValueType> types;
  for (const Value* output : model.graph().outputs()) types.push_back(output->type());
  return types;
}

/// The output types with the batch set to a number.
std::vector<ValueType> infer_for_batch(const Model& model, std::int64_t batch) {
  Model copy = model.clone();
  set_batch(copy, batch);
  return infer(std::move(copy));
}

/// Keeps the dims that are the same in both.
void keep_equal(ValueType& type, const ValueType& other) {
  if (!type.shape || !other.shape || type.shape->rank() != other.shape->rank()) {
    type.shape.reset();
    return;
  }
  for (int i = 0; i < type.shape->rank(); ++i) {
    if (!(*type.shape)[i].same_as((*other.shape)[i])) (*type.shape)[i] = Dim();
  }
}

}  // namespace

std::vector<ValueType> inferred_output_types(const Model& model) {
  std::vector<ValueType> types = infer(model.clone());
  if (std::ranges::all_of(types, says_all)) return types;
  // Shapes that are computed from an open batch hide their other dims; those do not depend on it.
  try {
    std::vector<ValueType> ones = infer_for_batch(model, 1);
    const std::vector<ValueType> twos = infer_for_batch(model, 2);
    for (std::size_t i = 0; i < types.size(); ++i) {
      keep_equal(ones[i], twos[i]);
      complete(types[i], ones[i]);
    }
  } catch (const Error&) {  // the model has no such batch
  }
  return types;
}

std::map<std::string, ValueType> value_types(const Model& model) {
  Model copy = model.clone();
  try {
    infer_types(copy);
  } catch (const Error&) {  // what was found until then counts
  }
  std::map<std::string, ValueType> types;
  const auto add = [&](const Value& value) {
    ValueType& type = types[value.name()] = value.type();
    const Value* const inferred = copy.graph().find(value.name());
    if (inferred != nullptr && !says_all(type)) complete(type, inferred->type());
  };
  for (const Value* input : model.graph().inputs()) add(*input);
  for (const Value* initializer : model.graph().initializers()) add(*initializer);
  for (const auto& node : model.graph().nodes()) {
    for (int i = 0; i < node->output_count(); ++i) {
      if (node->output(i) != nullptr) add(*node->output(i));
    }
  }
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
