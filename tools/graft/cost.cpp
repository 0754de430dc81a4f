#include "tools/graft/cost.h"

#include "core/ops/cost.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"
#include "train/step_graph.h"

namespace graft::cli {

std::optional<std::int64_t> multiply_adds(const Graph& graph) {
  std::int64_t sum = 0;
  for (const auto& node : graph.nodes()) {
    const std::optional<std::int64_t> count = node_multiply_adds(*node);
    if (!count) return std::nullopt;
    if (__builtin_add_overflow(sum, *count, &sum)) {
      fail(ErrorKind::shape, "the number of multiply-adds overflows at ", node->label());
    }
  }
  return sum;
}

std::optional<std::vector<ValueType>> bound_types(const Graph& graph, std::int64_t batch,
                                                  std::string* missing) {
  std::vector<ValueType> types;
  for (const Value* input : passes::required_inputs(graph)) {
    ValueType type = input->type();
    if (type.shape && type.shape->rank() > 0 && !(*type.shape)[0].is_known()) {
      (*type.shape)[0] = Dim(batch);
    }
    if (!type.shape || !type.shape->known() || type.is_container) {
      if (missing != nullptr) *missing = text("'", input->name(), "' ", input->type());
      return std::nullopt;
    }
    types.push_back(std::move(type));
  }
  return types;
}

std::unique_ptr<Graph> bound_graph(const Model& newest, const std::vector<ValueType>& types) {
  std::unique_ptr<Graph> graph = newest.graph().clone();
  passes::bind_inputs(*graph, types);
  passes::settle(*graph);
  return graph;
}

ValueType target_type(const Loss& loss, const ValueType& prediction) {
  const Shape shape = prediction.shape ? prediction.shape->known().value_or(Shape()) : Shape();
  if (has_sequence_targets(loss) && shape.rank() == 3) {
    return {DType::i64, SymShape(Shape{shape[1], shape[0] / 2})};  // half as long as the prediction
  }
  if (!has_class_targets(loss)) return prediction;
  const int axis = class_axis(loss, shape);
  if (axis < 0 || axis >= shape.rank()) {
    fail(ErrorKind::shape, loss.name, ": the prediction is ", prediction,
         ", which has no axis of classes");
  }
  std::vector<std::int64_t> dims = shape.dims();
  dims.erase(dims.begin() + axis);
  return {DType::i64, SymShape(Shape(std::move(dims)))};
}

StepMemory plan_step_memory(const Model& newest, const Loss& loss, const Optimizer& optimizer,
                            const std::vector<std::string>& parameters,
                            const std::vector<ValueType>& inputs, const ValueType& target) {
  Model model = newest.clone();
  StepMemory memory;
  for (const std::string& name : parameters) {
    Value* const parameter = model.graph().find(name);
    parameter->is_variable = true;
    memory.parameter_bytes += parameter->initializer().bytes();
  }
  const TrainOptions options{.loss = loss, .optimizer = optimizer};
  StateTensors state;
  StepGraph built =
      build_step_graph(model, options, {parameters}, inputs, target, StepKind::update, state);
  memory.arena_bytes = Plan(std::move(built.graph)).arena_bytes();
  for (const auto& [name, tensor] : state) memory.optimizer_bytes += tensor.bytes();
  return memory;
}

}  // namespace graft::cli
