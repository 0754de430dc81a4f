#include "core/layers/batch_probe.h"

#include <algorithm>

#include "core/graph/edit.h"
#include "core/passes/pass.h"
#include "core/passes/pipeline.h"

namespace graft::edit {
namespace {

/// Lets the inputs have another number as their batch.
void bind(Graph& graph, std::int64_t batch) {
  std::vector<Value*> inputs;
  std::vector<ValueType> open;
  std::vector<ValueType> bound;
  for (Value* input : passes::required_inputs(graph)) {
    ValueType type = input->type();
    const bool has_batch = type.shape && type.shape->rank() > 0;
    const int axis = has_batch ? batch_axis(graph, *input) : 0;
    inputs.push_back(input);
    if (has_batch) (*type.shape)[axis] = Dim();
    open.push_back(type);
    if (has_batch) (*type.shape)[axis] = batch;
    bound.push_back(std::move(type));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i]->set_type(std::move(open[i]));
  passes::bind_inputs(graph, bound);
}

Model newest(const Model& model) {
  Model copy = model.clone();
  passes::PassContext context{.device = cpu(), .model = &copy};
  passes::run_passes(passes::kNewestForm, copy.graph(), context);
  return copy;
}

}  // namespace

std::optional<Shape> known(const Value* value) {
  if (value == nullptr || !value->shape()) return std::nullopt;
  return value->shape()->known();
}

BatchProbe::BatchProbe(const Model& model, std::int64_t batch)
    : batch_(batch), old_(newest(model)), grown_(newest(model)) {
  checked_multiply(kGrowth, batch);  // those of the larger model, here and elsewhere
  bind(old_.graph(), batch);
  bind(grown_.graph(), kGrowth * batch);
  passes::PassContext context{.device = cpu()};
  passes::run_passes(passes::kSettle, old_.graph(), context);
}

bool BatchProbe::is_complete() const {
  for (const auto& node : old().nodes()) {
    bool has_body = false;
    for_each_body(*node, [&](const Graph&) { has_body = true; });
    if (has_body) return false;
    for (int i = 0; i < node->output_count(); ++i) {
      if (node->output(i) != nullptr && !known(node->output(i))) return false;
    }
  }
  return true;
}

std::optional<BatchAxis> BatchProbe::axis_of(const Value* value) const {
  if (value == nullptr) return std::nullopt;
  const std::optional<Shape> large = known(value);
  const std::optional<Shape> small = large ? known(old().find(value->name())) : std::nullopt;
  if (!small) return std::nullopt;
  std::optional<BatchAxis> axis = find_batch_axis(*small, *large, batch_, kGrowth * batch_);
  const auto outer = outer_.find(value->name());
  if (axis && outer != outer_.end()) axis->outer = outer->second;
  return axis;
}

Shape BatchProbe::old_shape(const Value* value) const {
  return old().find(value->name())->known_shape();
}

void BatchProbe::keep_outer(const Node& node) {
  std::int64_t outer = 1;
  for (const Value* input : node.inputs()) {
    const std::optional<BatchAxis> axis = axis_of(input);
    if (axis) outer = std::max(outer, axis->outer);
  }
  for (int i = 0; outer > 1 && i < node.output_count(); ++i) {
    const Value* const output = node.output(i);
    const std::optional<BatchAxis> axis = axis_of(output);
    if (axis && (*known(output))[axis->axis] % outer == 0) set_outer(output, outer);
  }
}

void BatchProbe::fold() {
  try {
    passes::fold_constants(grown());
  } catch (const Error&) {  // nodes behind may hold the old batch still
  }
}

}  // namespace graft::edit
