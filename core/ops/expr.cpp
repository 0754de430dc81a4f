#include "core/ops/expr.h"

#include <numeric>

#include "core/base/closest.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Builder& builder_of(const std::vector<Expr>& inputs) {
  for (const Expr& input : inputs) {
    if (input) return input.builder();
  }
  fail(ErrorKind::argument, "an op needs at least one operand to be built");
}

/// An operand whose type or graph is asked for.
const Expr& given(const Expr& operand) {
  if (!operand) fail(ErrorKind::argument, "an operand is no value, wanted one of the graph");
  return operand;
}

[[noreturn]] void refuse_unknown(std::string_view op) {
  std::vector<std::string_view> known;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (def.domain.empty()) known.push_back(def.name);
  }
  const std::vector<std::string> close = closest(op, known);
  fail(ErrorKind::unsupported, "no op is called '", op, "'",
       close.empty() ? "" : "; close names: " + quoted_list(close));
}

Expr scalar_call(std::string_view op, const Expr& a, double b) {
  return call(op, {a, constant_like(a, b)});
}

}  // namespace

std::vector<Expr> call_multi(std::string_view op, std::string_view domain,
                             const std::vector<Expr>& inputs, int outputs, Attributes attributes) {
  Builder& builder = builder_of(inputs);
  std::vector<Value*> values;
  for (const Expr& input : inputs) values.push_back(input.value());
  const Node* const node = builder.node(op, domain, values, outputs, std::move(attributes));
  std::vector<Expr> results;
  for (int i = 0; i < outputs; ++i) results.emplace_back(builder, node->output(i));
  return results;
}

Expr call(std::string_view op, const std::vector<Expr>& inputs, Attributes attributes) {
  if (OpRegistry::instance().find(op) == nullptr) refuse_unknown(op);
  return call_multi(op, "", inputs, 1, std::move(attributes)).front();
}

Expr call_internal(std::string_view op, const std::vector<Expr>& inputs, Attributes attributes) {
  return call_multi(op, kInternalDomain, inputs, 1, std::move(attributes)).front();
}

Expr constant_like(const Expr& like, double value) {
  Builder& builder = given(like).builder();
  return builder.expr(builder.constant(Tensor::full(like.dtype(), Shape{}, value)));
}

Expr constant_ints(Builder& builder, const std::vector<std::int64_t>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return builder.expr(builder.constant(Tensor::from(shape, values)));
}

Expr zeros_like(const Expr& like) {
  return expand(constant_like(like, 0.0), given(like).shape());
}

Expr operator+(const Expr& a, const Expr& b) {
  return call("Add", {a, b});
}
Expr operator-(const Expr& a, const Expr& b) {
  return call("Sub", {a, b});
}
Expr operator*(const Expr& a, const Expr& b) {
  return call("Mul", {a, b});
}
Expr operator/(const Expr& a, const Expr& b) {
  return call("Div", {a, b});
}
Expr operator+(const Expr& a, double b) {
  return scalar_call("Add", a, b);
}
Expr operator-(const Expr& a, double b) {
  return scalar_call("Sub", a, b);
}
Expr operator-(double a, const Expr& b) {
  return constant_like(b, a) - b;
}
Expr operator*(const Expr& a, double b) {
  return scalar_call("Mul", a, b);
}
Expr operator/(const Expr& a, double b) {
  return scalar_call("Div", a, b);
}
Expr operator/(double a, const Expr& b) {
  return constant_like(b, a) / b;
}
Expr operator-(const Expr& a) {
  return call("Neg", {a});
}

Expr exp(const Expr& x) {
  return call("Exp", {x});
}
Expr log(const Expr& x) {
  return call("Log", {x});
}
Expr sqrt(const Expr& x) {
  return call("Sqrt", {x});
}
Expr reciprocal(const Expr& x) {
  return call("Reciprocal", {x});
}
Expr pow(const Expr& x, double exponent) {
  return scalar_call("Pow", x, exponent);
}
Expr sigmoid(const Expr& x) {
  return call("Sigmoid", {x});
}
Expr tanh(const Expr& x) {
  return call("Tanh", {x});
}
Expr less(const Expr& a, const Expr& b) {
  return call("Less", {a, b});
}
Expr greater(const Expr& a, const Expr& b) {
  return call("Greater", {a, b});
}
Expr equal(const Expr& a, const Expr& b) {
  return call("Equal", {a, b});
}
Expr logical_not(const Expr& x) {
  return call("Not", {x});
}
Expr where(const Expr& condition, const Expr& a, const Expr& b) {
  return call("Where", {condition, a, b});
}

namespace {

Expr reduce(std::string_view op, const Expr& x, const std::vector<std::int64_t>& axes,
            bool keep_dims) {
  const Attributes attributes{{"keepdims", keep_dims ? 1 : 0}};
  if (axes.empty()) return call(op, {x}, attributes);
  return call(op, {x, constant_ints(given(x).builder(), axes)}, attributes);
}

}  // namespace

Expr reduce_sum(const Expr& x, const std::vector<std::int64_t>& axes, bool keep_dims) {
  return reduce("ReduceSum", x, axes, keep_dims);
}

Expr reduce_mean(const Expr& x, const std::vector<std::int64_t>& axes, bool keep_dims) {
  return reduce("ReduceMean", x, axes, keep_dims);
}

Expr matmul(const Expr& a, const Expr& b) {
  return call("MatMul", {a, b});
}

Expr transpose(const Expr& x, const std::vector<std::int64_t>& permutation) {
  return call("Transpose", {x}, {{"perm", permutation}});
}

Expr transpose_last(const Expr& x) {
  const int rank = given(x).rank();
  if (rank < 2) {
    fail(ErrorKind::shape, "transpose_last: '", x.value()->name(), "' is ", x.value()->type(),
         ", wanted rank 2 or more");
  }
  std::vector<std::int64_t> permutation(static_cast<std::size_t>(rank));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return transpose(x, permutation);
}

Expr reshape(const Expr& x, const Shape& shape) {
  if (given(x).shape() == shape) return x;
  // allowzero: a 0 in our shapes is a dim of size 0, not "copy the input's".
  return call("Reshape", {x, constant_ints(x.builder(), shape.dims())}, {{"allowzero", 1}});
}

Expr expand(const Expr& x, const Shape& shape) {
  if (given(x).shape() == shape) return x;
  return call("Expand", {x, constant_ints(x.builder(), shape.dims())});
}

Expr unsqueeze(const Expr& x, const std::vector<std::int64_t>& axes) {
  return call("Unsqueeze", {x, constant_ints(given(x).builder(), axes)});
}

Expr cast(const Expr& x, DType dtype) {
  return given(x).dtype() == dtype ? x : call("Cast", {x}, {{"to", static_cast<int>(dtype)}});
}

Expr sum_to(const Expr& x, const Shape& shape) {
  const Shape from = given(x).shape();
  if (from == shape) return x;
  if (broadcast(from, shape, "sum_to") != from) {
    fail(ErrorKind::shape, "a gradient of shape ", from, " cannot be summed to ", shape);
  }
  std::vector<std::int64_t> axes;
  const int extra = from.rank() - shape.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (axis < extra || (shape[axis - extra] == 1 && from[axis] != 1)) axes.push_back(axis);
  }
  return reshape(reduce_sum(x, axes, false), shape);
}

}  // namespace graft
