#include "tools/graft/cost.h"

#include "core/ops/cost.h"
#include "core/passes/pass.h"
#include "core/passes/pipeline.h"
#include "core/runtime/inference.h"
#include "train/compile.h"

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

std::unique_ptr<Graph> bound_graph(const Model& newest, std::vector<ValueType> types) {
  std::unique_ptr<Graph> graph = newest.graph().clone();
  passes::PassContext context{.device = cpu(), .input_types = std::move(types)};
  passes::run_passes(passes::kBound, *graph, context);
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

StepMemory plan_step(const Model& model, const TrainOptions& options,
                     const std::vector<ValueType>& inputs, const ValueType& target,
                     passes::PassLog* log) {
  const TrainableModel made = prepare_training(model, options, log);
  StateTensors state;
  const Compiled step = compile(made.model, options,
                                {.inputs = inputs,
                                 .targets = {target},
                                 .trained = made.trained,
                                 .state = &state,
                                 .log = log});
  StepMemory memory{.arena_bytes = step.plan.arena_bytes()};
  for (const std::string& name : made.trained.parameters) {
    memory.parameter_bytes += made.model.graph().find(name)->initializer().bytes();
  }
  for (const auto& [name, tensor] : state) memory.optimizer_bytes += tensor.bytes();
  return memory;
}

void plan_inference(const Model& model, const std::vector<ValueType>& inputs,
                    passes::PassLog* log) {
  const Model form = inference_form(model, false, log);
  Plan(inference_graph(form.graph(), inputs, cpu(), log), {.log = log});
}

}  // namespace graft::cli
