// softmax(scale q k^T + bias) v, as exporters write it. A match starts at the Softmax and walks up
// through masks and factors to the first product; start reading at `match`.
#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>

#include "core/ops/builder.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

/// Hides keys by an addend, or by a choice between scores and minus infinity.
struct Mask {
  Value* value;
  enum class Kind { added, hides_where_true, hides_where_false } kind = Kind::added;
};

struct Match {
  Node* softmax;
  Node* product;  ///< with v
  Value* q = nullptr;
  Value* k_columns = nullptr;  ///< [..., depth, key]
  double scale = 1.0;
  std::vector<Mask> masks{};

  Value* v() const { return product->input(1); }
};

std::optional<Shape> shape_of(const Value* value) {
  return value != nullptr && value->shape() ? value->shape()->known() : std::nullopt;
}

bool have_one_shape(const Value* a, const Value* b) {
  const std::optional<Shape> shape = shape_of(a);
  return shape && shape == shape_of(b);
}

/// x times or by a constant, or the constant times x: goes on to x.
bool skip_factor(Value*& value, double& scale) {
  Node* const node = value->producer();
  if (node == nullptr || !(node->is("Mul") || node->is("Div"))) return false;
  for (const int at : node->is("Mul") ? std::vector<int>{0, 1} : std::vector<int>{0}) {
    const std::optional<double> factor = scalar_of(node->input(1 - at));
    if (!factor || !have_one_shape(node->input(at), value)) continue;
    scale = node->is("Mul") ? scale * *factor : scale / *factor;
    value = node->input(at);
    return true;
  }
  return false;
}

/// Whether what trains, or changes between runs, enters the value.
bool depends_on_variable(const Value* value, std::unordered_set<const Value*>& seen) {
  if (value == nullptr || !seen.insert(value).second) return false;
  if (value->is_variable) return true;
  const Node* const node = value->producer();
  return node != nullptr && std::ranges::any_of(node->inputs(), [&](const Value* input) {
           return depends_on_variable(input, seen);
         });
}

/// Whether a product, through a few factors and masks, made the value.
bool comes_from_product(const Value* value, int most_steps = 6) {
  const Node* const node = value == nullptr ? nullptr : value->producer();
  if (node == nullptr || most_steps == 0) return false;
  if (node->is("MatMul")) return true;
  if (!node->is("Mul") && !node->is("Div") && !node->is("Add") && !node->is("Where")) return false;
  return std::ranges::any_of(node->inputs(), [&](const Value* input) {
    return comes_from_product(input, most_steps - 1);
  });
}

/// Goes on to the scores before a mask.
bool skip_mask(Value*& value, std::vector<Mask>& masks) {
  Node* const node = value->producer();
  if (node == nullptr) return false;
  const auto take = [&](Mask mask, Value* scores) {
    std::unordered_set<const Value*> seen;
    if (!have_one_shape(scores, value) || !comes_from_product(scores) ||
        depends_on_variable(mask.value, seen)) {
      return false;
    }
    masks.push_back(mask);
    value = scores;
    return true;
  };
  const auto is_hidden = [](const Value* chosen) {
    return scalar_of(chosen) == -std::numeric_limits<double>::infinity();
  };
  if (node->is("Add")) {
    return take({node->input(1)}, node->input(0)) || take({node->input(0)}, node->input(1));
  }
  if (!node->is("Where")) return false;
  if (is_hidden(node->input(1))) {
    return take({node->input(0), Mask::Kind::hides_where_true}, node->input(2));
  }
  return is_hidden(node->input(2)) &&
         take({node->input(0), Mask::Kind::hides_where_false}, node->input(1));
}

/// Shapes of q, k, v and scores as TiledAttention wants them: of one rank, batch dims alike.
bool have_fitting_shapes(const Match& match, const Value* scores) {
  const std::optional<Shape> q = shape_of(match.q);
  const std::optional<Shape> k = shape_of(match.k_columns);
  const std::optional<Shape> v = shape_of(match.v());
  const std::optional<Shape> s = shape_of(scores);
  if (!q || !k || !v || !s || s->rank() < 2) return false;
  const int batch = s->rank() - 2;
  return std::ranges::all_of(std::array{*q, *k, *v}, [&](const Shape& shape) {
    return shape.rank() == s->rank() && std::equal(s->begin(), s->begin() + batch, shape.begin());
  });
}

std::optional<Match> match(Node& softmax) {
  if (!softmax.is("Softmax") || softmax.input(0) == nullptr) return std::nullopt;
  Value* scores = softmax.input(0);
  const std::optional<Shape> shape = shape_of(scores);
  const std::int64_t axis = softmax.attributes.get_int("axis", -1);
  if (!shape || (axis != -1 && axis != shape->rank() - 1)) return std::nullopt;
  if (scores->dtype() != DType::f32 && scores->dtype() != DType::f64) return std::nullopt;
  Node* const product = only_reader(softmax.output());
  if (product == nullptr || !product->is("MatMul") || product->input(0) != softmax.output()) {
    return std::nullopt;
  }
  Match found{.softmax = &softmax, .product = product};
  const auto is_read_once = [&] { return only_reader(scores) != nullptr; };
  while (is_read_once() && skip_mask(scores, found.masks)) {
  }
  while (is_read_once() && skip_factor(scores, found.scale)) {
  }
  const Node* const first = scores->producer();
  if (!is_read_once() || first == nullptr || !first->is("MatMul")) return std::nullopt;
  found.q = first->input(0);
  found.k_columns = first->input(1);
  if (!have_fitting_shapes(found, scores)) return std::nullopt;
  while (skip_factor(found.q, found.scale)) {
  }
  while (skip_factor(found.k_columns, found.scale)) {
  }
  return found;
}

/// k as rows [..., key, depth]. A Transpose that made columns of them is undone.
Expr rows_of(Builder& builder, Value* columns, double& scale) {
  const Node* const node = columns->producer();
  if (node == nullptr || !node->is("Transpose")) return transpose_last(builder.expr(columns));
  const int rank = columns->known_shape().rank();
  std::vector<std::int64_t> reversed;
  for (int i = rank; i-- > 0;) reversed.push_back(i);
  std::vector<std::int64_t> order = node->attributes.get_ints("perm", reversed);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  Value* rows = node->input(0);
  if (!std::ranges::is_sorted(order)) return transpose(builder.expr(rows), order);
  while (skip_factor(rows, scale)) {
  }
  return builder.expr(rows);
}

/// The sum of all masks as addends; empty without any.
Expr bias_of(Builder& builder, const Match& match) {
  Expr bias;
  for (const Mask& mask : match.masks) {
    Expr addend = builder.expr(mask.value);
    if (mask.kind != Mask::Kind::added) {
      const DType dtype = match.q->dtype();
      const Expr shown = builder.expr(builder.constant(Tensor::zeros(dtype, Shape{})));
      const Expr hidden = builder.expr(
          builder.constant(Tensor::full(dtype, Shape{}, -std::numeric_limits<double>::infinity())));
      addend = mask.kind == Mask::Kind::hides_where_true ? where(addend, hidden, shown)
                                                         : where(addend, shown, hidden);
    }
    bias = bias ? bias + addend : addend;
  }
  return bias;
}

void fuse(Graph& graph, Match match) {
  Builder builder(graph, match.product);
  const Expr k = rows_of(builder, match.k_columns, match.scale);
  const Attributes attributes{{"scale", AttributeValue(static_cast<float>(match.scale))}};
  std::vector<Expr> inputs{builder.expr(match.q), k, builder.expr(match.v())};
  if (const Expr bias = bias_of(builder, match)) inputs.push_back(bias);
  const Expr y = call_multi("TiledAttention", kInternalDomain, inputs, 2, attributes).front();
  graph.replace_all_uses(match.product->output(), y.value());
}

}  // namespace

bool fuse_attention(Graph& graph) {
  std::vector<Match> found;
  for (const auto& node : graph.nodes()) {
    if (std::optional<Match> one = match(*node)) found.push_back(std::move(*one));
  }
  for (Match& one : found) fuse(graph, std::move(one));
  if (!found.empty()) eliminate_dead(graph);
  verify_in_debug(graph);
  return !found.empty();
}

}  // namespace graft::passes
