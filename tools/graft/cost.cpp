#include "tools/graft/cost.h"

#include <algorithm>

#include "core/ops/shape_rules.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"
#include "train/step_graph.h"

namespace graft::cli {
namespace {

std::optional<Shape> known(const Value* value) {
  return value == nullptr || !value->shape() ? std::nullopt : value->shape()->known();
}

/// One product for each element of `values` and each weight behind the first axis of `weight`
/// [out, in/groups, kernel...].
std::optional<std::int64_t> convolution(const Value* values, const Value* weight) {
  const std::optional<Shape> many = known(values);
  const std::optional<Shape> w = known(weight);
  if (!many || !w) return std::nullopt;
  return checked_multiply(many->size(), w->size(1, w->rank()));
}

/// Each element of the result is a sum over the last axis of a (the one before when transposed).
std::optional<std::int64_t> matrix_product(const Node& node) {
  const std::optional<Shape> a = known(node.input(0));
  const std::optional<Shape> y = known(node.output(0));
  if (!a || !y || a->rank() == 0) return std::nullopt;
  const bool is_transposed = a->rank() > 1 && node.attributes.get_int("transA", 0) != 0;
  return checked_multiply(y->size(), (*a)[a->rank() - (is_transposed ? 2 : 1)]);
}

/// Each step of each sample meets all of W and R; in the gradient twice.
std::optional<std::int64_t> recurrence(const Node& node) {
  const std::optional<Shape> x = known(node.input(0));
  const std::optional<Shape> w = known(node.input(1));
  const std::optional<Shape> r = known(node.input(2));
  if (!x || !w || !r || x->rank() != 3) return std::nullopt;
  const std::int64_t forward = checked_multiply(x->size(0, 2), checked_add(w->size(), r->size()));
  return node.op_type().ends_with("Grad") ? checked_multiply(forward, 2) : forward;
}

bool is_any(const Node& node, std::string_view domain,
            std::initializer_list<std::string_view> op_types) {
  return node.domain() == domain && std::ranges::find(op_types, node.op_type()) != op_types.end();
}

}  // namespace

std::optional<std::int64_t> node_multiply_adds(const Node& node) {
  if (node.is("Conv")) return convolution(node.output(0), node.input(1));
  if (node.is("ConvTranspose") || node.is("ConvInputGrad", kInternalDomain)) {
    return convolution(node.input(0), node.input(1));
  }
  if (node.is("ConvWeightGrad", kInternalDomain)) {
    return convolution(node.input(1), node.output(0));
  }
  if (is_any(node, "", {"Gemm", "MatMul"}) || node.is("BatchedMatMul", kInternalDomain)) {
    return matrix_product(node);
  }
  if (is_any(node, "", {"LSTM", "GRU", "RNN"}) ||
      is_any(node, kInternalDomain,
             {"LSTMTraining", "GRUTraining", "RNNTraining", "LSTMGrad", "GRUGrad", "RNNGrad"})) {
    return recurrence(node);
  }
  return 0;
}

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
