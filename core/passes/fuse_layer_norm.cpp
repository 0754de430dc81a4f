// (x - mean) / sqrt(variance + epsilon) * scale + bias, as exporters write it before opset 17, and
// the same without mean and bias (RMS). A match starts at the quotient and walks up to x; start
// reading at `match`.
#include <algorithm>
#include <ranges>

#include "core/ops/builder.h"
#include "core/ops/infer.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

struct Match {
  Value* normalized;
  Value* x = nullptr;
  int axis = 0;  ///< the first of those that are normalized together
  double epsilon = 0.0;
  bool is_centered = false;
};

Node* producer_of(const Value* value, std::string_view op_type) {
  Node* const node = value == nullptr ? nullptr : value->producer();
  return node != nullptr && node->is(op_type) ? node : nullptr;
}

/// From which axis on the node takes the mean of all, if it keeps their dims.
std::optional<int> first_axis_of_mean(const Node& mean) {
  const std::optional<Shape> x = shape_of(mean.input(0));
  if (!x || mean.attributes.get_int("keepdims", 1) == 0) return std::nullopt;
  const int rank = x->rank();
  const Value* const given = mean.input_count() > 1 ? mean.input(1) : nullptr;
  const Tensor tensor = given == nullptr ? Tensor() : constant_of(given);
  if (!tensor.defined() || tensor.dtype() != DType::i64) return std::nullopt;
  std::vector<std::int64_t> axes;
  for (const std::int64_t axis : tensor.values<std::int64_t>()) {
    axes.push_back(axis < 0 ? axis + rank : axis);
  }
  std::ranges::sort(axes);
  const int count = static_cast<int>(axes.size());
  for (int i = 0; i < count; ++i) {
    if (axes[static_cast<std::size_t>(i)] != rank - count + i) return std::nullopt;
  }
  return count == 0 ? std::nullopt : std::optional(rank - count);
}

/// What the value is the square of, by power or product.
Value* root_of(const Value* square) {
  if (const Node* const power = producer_of(square, "Pow")) {
    return scalar_of(power->input(1)) == 2.0 ? power->input(0) : nullptr;
  }
  const Node* const product = producer_of(square, "Mul");
  return product != nullptr && product->input(0) == product->input(1) ? product->input(0) : nullptr;
}

/// Whether both are x - mean: some exporters write the difference twice.
bool are_one_difference(const Value* a, const Value* b) {
  if (a == b) return true;
  const Node* const first = producer_of(a, "Sub");
  const Node* const second = producer_of(b, "Sub");
  return first != nullptr && second != nullptr && first->input(0) == second->input(0) &&
         first->input(1) == second->input(1);
}

/// A numerator, and the square root that divides it.
struct Quotient {
  Value* numerator;
  Value* root;
};

/// a / root, a * (1 / root) or a * Reciprocal(root).
std::optional<Quotient> quotient_of(const Value* value) {
  if (const Node* const division = producer_of(value, "Div")) {
    return Quotient{division->input(0), division->input(1)};
  }
  const Node* const product = producer_of(value, "Mul");
  for (int i = 0; product != nullptr && i < 2; ++i) {
    Value* const other = product->input(1 - i);
    if (const Node* const inverse = producer_of(product->input(i), "Reciprocal")) {
      return Quotient{other, inverse->input(0)};
    }
    const Node* const inverse = producer_of(product->input(i), "Div");
    if (inverse != nullptr && scalar_of(inverse->input(0)) == 1.0) {
      return Quotient{other, inverse->input(1)};
    }
  }
  return std::nullopt;
}

/// Goes from sqrt(mean + epsilon) to the mean.
const Node* mean_of_root(const Value* root, double& epsilon) {
  const Node* const node = producer_of(root, "Sqrt");
  const Node* const sum = node == nullptr ? nullptr : producer_of(node->input(0), "Add");
  for (int i = 0; sum != nullptr && i < 2; ++i) {
    const std::optional<double> addend = scalar_of(sum->input(i));
    if (!addend || *addend < 0.0) continue;
    epsilon = *addend;
    return producer_of(sum->input(1 - i), "ReduceMean");
  }
  return nullptr;
}

std::optional<Match> match(Node& node) {
  if (!(node.is("Div") || node.is("Mul"))) return std::nullopt;
  Match found{.normalized = node.output()};
  const DType dtype = found.normalized->dtype();
  const std::optional<Quotient> quotient = quotient_of(found.normalized);
  if (!quotient || (dtype != DType::f32 && dtype != DType::f64)) return std::nullopt;
  const Node* const variance = mean_of_root(quotient->root, found.epsilon);
  if (!fits_attribute(found.epsilon, dtype)) return std::nullopt;
  const std::optional<int> axis =
      variance == nullptr ? std::nullopt : first_axis_of_mean(*variance);
  Value* const deviation = axis ? root_of(variance->input(0)) : nullptr;
  if (deviation == nullptr || !are_one_difference(deviation, quotient->numerator)) {
    return std::nullopt;
  }
  found.axis = *axis;
  found.x = deviation;
  if (const Node* const difference = producer_of(deviation, "Sub")) {
    const Node* const mean = producer_of(difference->input(1), "ReduceMean");
    if (mean != nullptr && mean->input(0) == difference->input(0) &&
        first_axis_of_mean(*mean) == found.axis) {
      found.x = difference->input(0);
      found.is_centered = true;
    }
  }
  const std::optional<Shape> shape = shape_of(found.x);
  return shape && shape == shape_of(found.normalized) ? std::optional(found) : std::nullopt;
}

/// The other operand of the only node that reads `value`, if that is such a node and the operand
/// one number, or one for each element that is normalized together; goes on to the result.
Value* take_parameter(Value*& value, std::string_view op_type, const Shape& row) {
  Node* const reader = only_reader(value);
  if (reader == nullptr || !reader->is(op_type)) return nullptr;
  Value* const parameter = reader->input(reader->input(0) == value ? 1 : 0);
  const std::optional<Shape> shape = shape_of(parameter);
  if (parameter == value || !shape || (shape->rank() > 0 && *shape != row)) return nullptr;
  value = reader->output();
  return parameter;
}

void fuse(Graph& graph, const Match& match) {
  const Shape& x = match.x->known_shape();
  const Shape row(std::vector<std::int64_t>(x.begin() + match.axis, x.end()));
  Value* result = match.normalized;
  Value* const scale = take_parameter(result, "Mul", row);
  Value* const bias = match.is_centered ? take_parameter(result, "Add", row) : nullptr;
  Builder builder(graph, result->producer());
  const Tensor ones = Tensor::full(match.x->dtype(), row, 1.0);
  std::vector<Expr> operands{builder.expr(match.x),
                             builder.expr(scale == nullptr ? builder.constant(ones) : scale)};
  if (bias != nullptr) operands.push_back(builder.expr(bias));
  const Expr y = call(match.is_centered ? "LayerNormalization" : "RMSNormalization", operands,
                      {{"axis", match.axis}, {"epsilon", static_cast<float>(match.epsilon)}});
  graph.replace_all_uses(result, y.value());
}

}  // namespace

bool fuse_layer_norm(Graph& graph) {
  std::vector<Match> found;
  for (const auto& node : graph.nodes()) {
    if (const std::optional<Match> one = match(*node)) found.push_back(*one);
  }
  // The last first: an earlier one is then replaced in what reads it, too.
  for (const Match& one : std::views::reverse(found)) fuse(graph, one);
  if (!found.empty()) eliminate_dead(graph);
  verify_in_debug(graph);
  return !found.empty();
}

}  // namespace graft::passes
