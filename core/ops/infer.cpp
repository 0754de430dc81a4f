#include "core/ops/infer.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/base/limits.h"
#include "core/base/time_limit.h"
#include "core/ops/registry.h"

namespace graft {

const Value& InferContext::input(int index) const {
  const Value* const value = node_.input(index);
  if (value == nullptr) fail(ErrorKind::model, "input ", index, " is missing");
  return *value;
}

DType InferContext::dtype(int index) const {
  const Value* const value = node_.input(index);
  return value == nullptr ? DType::undefined : value->dtype();
}

const SymShape* InferContext::shape(int index) const {
  const Value* const value = node_.input(index);
  return value == nullptr || !value->shape() ? nullptr : &*value->shape();
}

Tensor constant_of(const Value* value) {
  return value == nullptr || value->is_variable ? Tensor() : value->initializer();
}

Tensor InferContext::constant(int index) const {
  return constant_of(node_.input(index));
}

std::optional<std::vector<std::int64_t>> InferContext::constant_ints(int index) const {
  const Tensor tensor = constant(index);
  if (!tensor.defined()) return std::nullopt;
  return to_int64(tensor);
}

void InferContext::set_output(int index, DType dtype, std::optional<SymShape> shape) {
  Value* const value = node_.output(index);
  if (value == nullptr) return;
  if (shape && shape->rank() > limits().rank) {
    fail(ErrorKind::unsupported, "'", value->name(), "' has rank ", shape->rank(), "; ",
         limit_text("rank", limits().rank));
  }
  ValueType type{dtype, std::move(shape)};
  if (value->type() == type) return;  // most have it since an earlier pass
  if (type.shape) type.shape = node_.graph().share_dims(*std::move(type.shape));
  value->set_type(std::move(type));
}

void InferContext::copy_type(int from, int index) {
  Value* const value = node_.output(index);
  if (value != nullptr && value->type() != input(from).type()) value->set_type(input(from).type());
}

void InferContext::require_same_dtype(std::initializer_list<int> inputs) const {
  const Value* first = nullptr;
  for (const int index : inputs) {
    const Value* const value = node_.input(index);
    if (value == nullptr || value->dtype() == DType::undefined) continue;
    if (first == nullptr) first = value;
    if (value->dtype() != first->dtype()) {
      fail(ErrorKind::type, "inputs must have one element type, found ", first->dtype(), " ('",
           first->name(), "') and ", value->dtype(), " ('", value->name(), "')");
    }
  }
}

void InferContext::require_rank(int index, int least, int most) const {
  const SymShape* const found = shape(index);
  if (found == nullptr || (found->rank() >= least && found->rank() <= most)) return;
  fail(ErrorKind::shape, "input '", input(index).name(), "' is ", input(index).type(),
       ", wanted rank ", least, least == most ? std::string() : text(" to ", most));
}

namespace {

/// Joins dim `b` into dim `a` by the broadcasting rule.
Dim join(const InferContext& context, const Dim& a, const Dim& b) {
  if (a.same_as(b)) return a;
  if (a.is_known() && a.value() == 1) return b;
  if (b.is_known() && b.value() == 1) return a;
  if (a.is_known() && b.is_known()) {
    context.fail(ErrorKind::shape, "dims ", a, " and ", b, " do not broadcast");
  }
  // A known dim other than 1 decides: the unknown one is equal to it or 1.
  if (a.is_known()) return a;
  if (b.is_known()) return b;
  return {};
}

}  // namespace

SymShape broadcast(const InferContext& context, const SymShape& a, const SymShape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<Dim> result(static_cast<std::size_t>(rank), Dim(1));
  for (const SymShape* const shape : {&a, &b}) {
    const int offset = rank - shape->rank();
    for (int axis = 0; axis < shape->rank(); ++axis) {
      Dim& dim = at(result, axis + offset);
      dim = join(context, dim, (*shape)[axis]);
    }
  }
  return SymShape(std::move(result));
}

std::optional<SymShape> broadcast_inputs(const InferContext& context) {
  std::optional<SymShape> result;
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    const SymShape* const shape = context.shape(i);
    if (shape == nullptr) return std::nullopt;
    if (!result) {
      result = *shape;
    } else if (*result != *shape) {  // most are equal, and a shape is an allocation
      result = broadcast(context, *result, *shape);
    }
  }
  if (!result) result.emplace();
  return result;
}

void infer(Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  if (def == nullptr) return;
  check_time();
  InferContext context(node);
  for (std::size_t i = 0; i < def->inputs.size(); ++i) {
    const Param& param = def->inputs[i];
    if (param.arity == Arity::required && !context.has_input(static_cast<int>(i))) {
      context.fail(ErrorKind::model, "required input '", param.name, "' is missing");
    }
  }
  def->infer(context);
}

void infer_same(InferContext& context) {
  context.copy_type(0);
}

void infer_broadcast(InferContext& context) {
  for (int i = 1; i < context.input_count(); ++i) context.require_same_dtype({0, i});
  context.set_output(0, context.dtype(0), broadcast_inputs(context));
}

void infer_broadcast_bool(InferContext& context) {
  for (int i = 1; i < context.input_count(); ++i) context.require_same_dtype({0, i});
  context.set_output(0, DType::boolean, broadcast_inputs(context));
}

}  // namespace graft
