#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace graft {

class Builder;

/// A value in a graph under construction, with operators that add nodes. Cheap to copy. An empty
/// Expr stands for "no value": a left-out input, or no gradient. Types and shapes of operands must
/// be known; ordinary broadcasting applies. Functions that need a value throw Error{argument} for
/// an empty one.
class Expr {
 public:
  Expr() = default;
  Expr(Builder& builder, Value* value) : builder_(&builder), value_(value) {}

  explicit operator bool() const { return value_ != nullptr; }
  Value* value() const { return value_; }
  Builder& builder() const { return *builder_; }
  DType dtype() const { return value_->dtype(); }
  /// Throws Error{shape} if it is not fully known.
  Shape shape() const { return value_->known_shape(); }
  int rank() const { return shape().rank(); }

 private:
  Builder* builder_ = nullptr;
  Value* value_ = nullptr;
};

/// A call of any standard op with one output.
Expr call(std::string_view op, const std::vector<Expr>& inputs, Attributes attributes = {});
/// A call of an op of the internal domain.
Expr call_internal(std::string_view op, const std::vector<Expr>& inputs,
                   Attributes attributes = {});
std::vector<Expr> call_multi(std::string_view op, std::string_view domain,
                             const std::vector<Expr>& inputs, int outputs,
                             Attributes attributes = {});

/// A scalar constant with the element type of `like`.
Expr constant_like(const Expr& like, double value);
/// A 1-d i64 constant.
Expr constant_ints(Builder& builder, const std::vector<std::int64_t>& values);
/// Zeros with the type and shape of `like`.
Expr zeros_like(const Expr& like);

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator+(const Expr& a, double b);
Expr operator-(const Expr& a, double b);
Expr operator-(double a, const Expr& b);
Expr operator*(const Expr& a, double b);
Expr operator/(const Expr& a, double b);
Expr operator/(double a, const Expr& b);
Expr operator-(const Expr& a);

Expr exp(const Expr& x);
Expr log(const Expr& x);
Expr sqrt(const Expr& x);
Expr reciprocal(const Expr& x);
Expr pow(const Expr& x, double exponent);
Expr sigmoid(const Expr& x);
Expr tanh(const Expr& x);
/// bool
Expr less(const Expr& a, const Expr& b);
Expr greater(const Expr& a, const Expr& b);
Expr equal(const Expr& a, const Expr& b);
Expr logical_not(const Expr& x);
/// Element-wise choice; `condition` is bool.
Expr where(const Expr& condition, const Expr& a, const Expr& b);

/// Reductions over `axes` (all when empty).
Expr reduce_sum(const Expr& x, const std::vector<std::int64_t>& axes, bool keep_dims);
Expr reduce_mean(const Expr& x, const std::vector<std::int64_t>& axes, bool keep_dims);

Expr matmul(const Expr& a, const Expr& b);
Expr transpose(const Expr& x, const std::vector<std::int64_t>& permutation);
/// Swaps the last two axes. Throws Error{shape} if there are fewer.
Expr transpose_last(const Expr& x);
Expr reshape(const Expr& x, const Shape& shape);
/// Broadcasts to `shape`.
Expr expand(const Expr& x, const Shape& shape);
Expr unsqueeze(const Expr& x, const std::vector<std::int64_t>& axes);
Expr cast(const Expr& x, DType dtype);
/// Sums out the axes along which `shape` was broadcast to x's shape; x itself when they are equal.
/// Throws Error{shape} if `shape` does not broadcast to it.
Expr sum_to(const Expr& x, const Shape& shape);

}  // namespace graft
