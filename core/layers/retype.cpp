#include "core/layers/retype.h"

#include <algorithm>
#include <unordered_set>

#include "core/graph/find.h"
#include "core/layers/output_types.h"

namespace graft::edit {
namespace {

bool reads_one_of(const Node& node, const std::unordered_set<const Value*>& values) {
  bool found = false;
  for_each_read(node, [&](const Value& read) { found = found || values.contains(&read); });
  return found;
}

/// Every dim but the batch is known.
bool is_enough(const ValueType& type) {
  if (type.dtype == DType::undefined || !type.shape) return false;
  const SymShape& shape = *type.shape;
  return shape.rank() > 0 &&
         std::all_of(shape.begin() + 1, shape.end(), [](const Dim& dim) { return dim.is_known(); });
}

}  // namespace

void retype_behind(Model& model, const Value& value) {
  std::unordered_set<const Value*> changed{&value};
  std::vector<Value*> behind;
  for (const auto& node : model.graph().nodes()) {
    if (!reads_one_of(*node, changed)) continue;
    for (int i = 0; i < node->output_count(); ++i) {
      Value* const output = node->output(i);
      if (output == nullptr || output->type().is_container) continue;
      changed.insert(output);
      behind.push_back(output);
      output->set_type({.dtype = output->dtype()});
    }
  }
  const std::map<std::string, ValueType> found = value_types(model);
  for (Value* each : behind) each->set_type(found.at(each->name()));
  complete_output_types(model);  // throws where value_types only stops
}

void infer_types_of(Model& model, const std::vector<std::string>& values) {
  std::vector<Value*> open;
  for (const std::string& name : values) {
    Value* const value = find_value(model.graph(), "infer", name);
    if (value->dtype() == DType::undefined || !value->shape()) open.push_back(value);
  }
  if (open.empty()) return;
  const std::map<std::string, ValueType> found = value_types(model);
  for (Value* value : open) value->set_type(found.at(value->name()));
}

ValueType type_of(const Model& model, const Value& value) {
  if (is_enough(value.type())) return value.type();
  Model copy = model.clone();
  Graph& graph = copy.graph();
  graph.set_outputs({graph.find(value.name())});
  return inferred_output_types(copy).at(0);
}

}  // namespace graft::edit
