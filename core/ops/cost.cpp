#include "core/ops/cost.h"

#include <algorithm>

#include "core/ops/attention/attention_geometry.h"
#include "core/ops/shape_rules.h"
#include "core/ops/train/product_update.h"

namespace graft {
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

/// Every query meets every key and, weighted, its value. The gradient computes the scores again and
/// has two products more for each of those.
std::optional<std::int64_t> attention(const Node& node) {
  const bool is_stack = node.attributes.has("stack_axis");
  const std::optional<Shape> x = known(node.input(0));
  const std::optional<Shape> k = is_stack ? x : known(node.input(1));
  const std::optional<Shape> v = is_stack ? x : known(node.input(2));
  if (!x || !k || !v) return std::nullopt;
  const Shape q = query_shape(*x, node.attributes, node.label());
  if (q.size() == 0) return 0;
  const auto last = [](const Shape& shape) { return shape[shape.rank() - 1]; };
  // The axis of a stack comes behind that of the sequence.
  const std::int64_t keys =
      (*k)[normalize_axis(node.attributes.get_int("sequence_axis", -2), q.rank(), node.label())];
  const bool is_gradient = node.op_type().ends_with("Grad");
  const std::int64_t each = is_gradient ? 3 * last(q) + 2 * last(*v) : last(q) + last(*v);
  return checked_multiply(checked_multiply(q.size() / last(q), keys), each);
}

/// Each row meets both weights; the gradient meets the first again, and both twice.
std::optional<std::int64_t> feed_forward(const Node& node) {
  const std::optional<Shape> x = known(node.input(0));
  const std::optional<Shape> w1 = known(node.input(1));
  const std::optional<Shape> w2 = known(node.input(2));
  if (!x || !w1 || !w2 || x->rank() == 0) return std::nullopt;
  const bool is_gradient = node.op_type().ends_with("Grad");
  const std::int64_t times_w1 = checked_multiply(w1->size(), is_gradient ? 3 : 1);
  const std::int64_t times_w2 = checked_multiply(w2->size(), is_gradient ? 2 : 1);
  return checked_multiply(x->size(0, x->rank() - 1), checked_add(times_w1, times_w2));
}

/// a' b' of an update.
std::optional<std::int64_t> product_update(const Node& node) {
  const std::optional<Shape> w = known(node.input(0));
  const std::optional<Shape> a = known(node.input(1));
  if (!a || !w || a->rank() != 2) return std::nullopt;
  return checked_multiply(w->size(), (*a)[node.attributes.get_int("transA", 0) != 0 ? 0 : 1]);
}

bool is_any(const Node& node, std::string_view domain,
            std::initializer_list<std::string_view> op_types) {
  return node.domain() == domain && std::ranges::find(op_types, node.op_type()) != op_types.end();
}

std::size_t bytes_of_value(const Value* value) {
  return value == nullptr ? 0 : value->bytes();
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
  if (is_product_update(node)) return product_update(node);
  if (is_any(node, kInternalDomain, {"TiledAttention", "TiledAttentionGrad"})) {
    return attention(node);
  }
  if (is_any(node, kInternalDomain, {"FeedForward", "FeedForwardGrad"})) {
    return feed_forward(node);
  }
  if (is_any(node, "", {"LSTM", "GRU", "RNN"}) ||
      is_any(node, kInternalDomain,
             {"LSTMTraining", "GRUTraining", "RNNTraining", "LSTMGrad", "GRUGrad", "RNNGrad"})) {
    return recurrence(node);
  }
  return 0;
}

double cost_in_bytes(const Node& node) {
  constexpr double kMultiplyAddsAByte = 16.0;
  std::size_t bytes = 0;
  for (const Value* input : node.inputs()) bytes += bytes_of_value(input);
  for (int i = 0; i < node.output_count(); ++i) bytes += bytes_of_value(node.output(i));
  return static_cast<double>(bytes) +
         static_cast<double>(node_multiply_adds(node).value_or(0)) / kMultiplyAddsAByte;
}

}  // namespace graft
