// softmax(scale q k^T + bias) v, as exporters write it. A match starts at the Softmax and walks up
// through masks and factors to the first product; start reading at `match`.
#include <algorithm>
#include <array>
#include <limits>
#include <ranges>
#include <unordered_set>

#include "core/ops/alias.h"
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

/// Whether what trains, or changes between runs, enters the value.
bool depends_on_variable(const Value* start) {
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> open{start};
  while (!open.empty()) {
    const Value* const value = open.back();
    open.pop_back();
    if (value == nullptr || !seen.insert(value).second) continue;
    if (value->is_variable) return true;
    const Node* const node = value->producer();
    if (node != nullptr) open.insert(open.end(), node->inputs().begin(), node->inputs().end());
  }
  return false;
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
    if (!have_one_shape(scores, value) || !comes_from_product(scores) ||
        depends_on_variable(mask.value)) {
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

std::vector<std::int64_t> permutation_of(const Node& transpose) {
  const int rank = transpose.input(0)->known_shape().rank();
  std::vector<std::int64_t> reversed;
  for (int i = rank; i-- > 0;) reversed.push_back(i);
  return transpose.attributes.get_ints("perm", reversed);
}

/// k as rows [..., key, depth]. A Transpose that made columns of them is undone.
Expr rows_of(Builder& builder, Value* columns, double& scale) {
  const Node* const node = columns->producer();
  if (node == nullptr || !node->is("Transpose")) return transpose_last(builder.expr(columns));
  std::vector<std::int64_t> order = permutation_of(*node);
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

/// Takes axis `from` out and puts it back before what then is axis `to`.
template <class T>
std::vector<T> with_moved(std::vector<T> list, int from, int to) {
  const T moved = list[static_cast<std::size_t>(from)];
  list.erase(list.begin() + from);
  list.insert(list.begin() + to, moved);
  return list;
}

/// The axis that a transpose makes the last but one, if that is all it does.
std::optional<int> sequence_axis_of(const Node* node) {
  if (node == nullptr || !node->is("Transpose")) return std::nullopt;
  const std::vector<std::int64_t> order = permutation_of(*node);
  const int rank = static_cast<int>(order.size());
  std::vector<std::int64_t> same;
  for (int i = 0; i < rank; ++i) same.push_back(i);
  if (rank < 3) return std::nullopt;
  const int axis = static_cast<int>(order[order.size() - 2]);
  if (axis >= rank - 2 || order != with_moved(same, axis, rank - 2)) return std::nullopt;
  return axis;
}

/// An operand as it lay before a transpose brought it into the form [..., sequence, depth].
struct Origin {
  Expr value;
  int sequence_axis;
};

/// Also through a Reshape that divides or joins the other axes.
std::optional<Origin> origin_of(Builder& builder, const Expr& rows) {
  const Node* node = rows.value()->producer();
  if (node != nullptr && node->is("Reshape")) node = node->input(0)->producer();
  const std::optional<int> axis = sequence_axis_of(node);
  if (!axis) return std::nullopt;
  const Shape wanted = rows.shape();
  const Shape found = node->output()->known_shape();
  const int rank = wanted.rank();
  if (wanted[rank - 2] != found[found.rank() - 2] || wanted[rank - 1] != found[found.rank() - 1]) {
    return std::nullopt;
  }
  for (int split = 0; split < rank - 2; ++split) {
    if (wanted.size(0, split) != found.size(0, *axis)) continue;
    const Shape dims(with_moved(wanted.dims(), rank - 2, split));
    return Origin{reshape(builder.expr(node->input(0)), dims), split};
  }
  return std::nullopt;
}

/// q, k, v of one attention, its other inputs, and where its result goes.
struct Call {
  std::vector<Expr> operands;
  Attributes attributes;
  Value* result;
};

/// Where q, k and v were all transposed from one layout, and the result is transposed back to it,
/// the kernel reads and writes that layout itself.
void skip_transposes(Builder& builder, Call& call) {
  const Node* const reader = only_reader(call.result);
  if (reader == nullptr || !reader->is("Transpose") || call.result->known_shape().size() == 0) {
    return;
  }
  std::vector<Origin> origins;
  for (const Expr& operand : call.operands) {
    std::optional<Origin> origin = origin_of(builder, operand);
    if (!origin) return;
    origins.push_back(*std::move(origin));
  }
  const int axis = origins.front().sequence_axis;
  const auto is_same = [&](const Origin& o) { return o.sequence_axis == axis; };
  const std::vector<std::int64_t> back = permutation_of(*reader);
  std::vector<std::int64_t> same;
  for (std::int64_t i = 0; i < std::ssize(back); ++i) same.push_back(i);
  if (!std::ranges::all_of(origins, is_same) ||
      back != with_moved(same, static_cast<int>(back.size()) - 2, axis)) {
    return;
  }
  for (std::size_t i = 0; i < origins.size(); ++i) call.operands[i] = origins[i].value;
  call.attributes.set({"sequence_axis", axis});
  call.result = reader->output();
}

/// Whether the operands are, in order, all parts of what the node splits evenly.
bool are_parts_of(const Node* split, const std::vector<Expr>& operands) {
  if (split == nullptr || !split->is("Split") || split->output_count() != std::ssize(operands)) {
    return false;
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_part = origin(operands[i].value()) == split->output(static_cast<int>(i)) &&
                         operands[i].shape() == operands[0].shape();
    if (!is_part) return false;
  }
  return true;
}

/// Where q, k and v were split from one value, the kernel reads that itself, and its gradient is
/// one value, too.
void skip_split(Builder& builder, Call& call) {
  const Node* const split = origin(call.operands.front().value())->producer();
  if (!are_parts_of(split, call.operands)) return;
  const Shape whole = split->input(0)->known_shape();
  const int split_axis =
      normalize_axis(split->attributes.get_int("axis", 0), whole.rank(), split->label());
  const Shape part = call.operands.front().shape();
  const int sequence_axis =
      normalize_axis(call.attributes.get_int("sequence_axis", -2), part.rank(), split->label());
  for (int axis = sequence_axis + 1; axis < part.rank(); ++axis) {
    if (part.size() == 0 || part.size(0, axis) != whole.size(0, split_axis)) continue;
    std::vector<std::int64_t> dims = part.dims();
    dims.insert(dims.begin() + axis, std::ssize(call.operands));
    call.operands = {reshape(builder.expr(split->input(0)), Shape(std::move(dims))), {}, {}};
    call.attributes.set({"sequence_axis", sequence_axis});
    call.attributes.set({"stack_axis", axis});
    return;
  }
}

void fuse(Graph& graph, Match match) {
  Builder builder(graph, match.product);
  const Expr k = rows_of(builder, match.k_columns, match.scale);
  Expr q = builder.expr(match.q);
  if (!fits_attribute(match.scale, q.dtype())) {
    q = q * constant_like(q, std::exchange(match.scale, 1.0));
  }
  Call call{{q, k, builder.expr(match.v())},
            {{"scale", AttributeValue(static_cast<float>(match.scale))}},
            match.product->output()};
  skip_transposes(builder, call);
  skip_split(builder, call);
  if (const Expr bias = bias_of(builder, match)) call.operands.push_back(bias);
  const Expr y =
      call_multi("TiledAttention", kInternalDomain, call.operands, 2, call.attributes).front();
  graph.replace_all_uses(call.result, y.value());
}

}  // namespace

bool fuse_attention(Graph& graph) {
  std::vector<Match> found;
  for (const auto& node : graph.nodes()) {
    if (std::optional<Match> one = match(*node)) found.push_back(std::move(*one));
  }
  // The last first: an earlier one is then replaced in what reads it, too.
  for (Match& one : std::views::reverse(found)) fuse(graph, std::move(one));
  if (!found.empty()) eliminate_dead(graph);
  verify_in_debug(graph);
  return !found.empty();
}

}  // namespace graft::passes
