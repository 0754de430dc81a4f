// Encoder layers with the batch in front transpose it behind the sequence, attend, and transpose
// back. What lies between works row by row, so rows may stay where they are: the attention takes
// its sequence from another axis. Start at `match`.
#include <algorithm>
#include <ranges>

#include "core/ops/alias.h"
#include "core/ops/builder.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

/// A node that makes rows of rows, each of one: a product with a matrix, or a sum with a vector.
struct RowOp {
  Node* node;
  int data;  ///< the input that holds the rows
};

std::int64_t columns_of(const Value* value) {
  const Shape shape = value->known_shape();
  return shape[shape.rank() - 1];
}

/// Whether input `data` of the node holds rows that it works on one by one.
bool is_row_op(const Node& node, int data) {
  const std::optional<Shape> x = shape_of(node.input(data));
  if (!x || x->rank() < 2) return false;
  const auto is_vector = [&](const Value* value, std::int64_t size) {
    return shape_of(value) == Shape{size};
  };
  if (node.is("Add")) return is_vector(node.input(1 - data), columns_of(node.input(data)));
  if (data != 0) return false;
  const std::optional<Shape> w = shape_of(node.input(1));
  if (node.is("MatMul")) return w && w->rank() == 2;
  return node.is("Gemm") && node.attributes.get_int("transA", 0) == 0 &&
         (node.input(2) == nullptr || is_vector(node.input(2), columns_of(node.output())));
}

/// [a, b, c] -> [b, a, c]
bool swaps_rows(const Node* node) {
  return node != nullptr && node->is("Transpose") &&
         node->attributes.get_ints("perm") == std::vector<std::int64_t>{1, 0, 2};
}

struct Match {
  Node* attention;
  Value* source;              ///< [batch, sequence, columns], before the first Transpose
  std::vector<RowOp> before;  ///< the attention, in order
  std::vector<RowOp> behind;
  Node* back = nullptr;  ///< the second Transpose
};

/// Goes up from what the attention reads to the first Transpose.
bool find_source(Match& match) {
  Value* value = match.attention->input(0);
  while (only_reader(value) != nullptr) {
    Node* const node = value->producer();
    if (node == nullptr) return false;
    if (swaps_rows(node)) break;
    int data = 0;
    if (!is_view(*node)) {
      while (data < 2 && !is_row_op(*node, data)) ++data;
      if (data == 2) return false;
      match.before.insert(match.before.begin(), {node, data});
    }
    value = node->input(data);
  }
  if (!swaps_rows(value->producer())) return false;
  match.source = value->producer()->input(0);
  return true;
}

/// Goes down from the attention's result to the second Transpose.
bool find_back(Match& match) {
  const Value* value = match.attention->output(0);
  for (Node* node = only_reader(value); node != nullptr; node = only_reader(value)) {
    if (swaps_rows(node)) {
      match.back = node;
      return true;
    }
    if (!is_view(*node)) {
      const int data = node->input(0) == value ? 0 : 1;
      if (!is_row_op(*node, data)) return false;
      match.behind.push_back({node, data});
    }
    value = node->output(0);
  }
  return false;
}

std::optional<Match> match(Node& node) {
  const Attributes& attributes = node.attributes;
  if (!node.is("TiledAttention", kInternalDomain) || attributes.get_int("sequence_axis", -2) != 0 ||
      !attributes.has("stack_axis") || !node.output(1)->is_unused()) {
    return std::nullopt;
  }
  Match found{.attention = &node, .source = nullptr, .before = {}, .behind = {}};
  if (!find_source(found) || !find_back(found)) return std::nullopt;
  const Shape x = node.input(0)->known_shape();
  const Shape source = found.source->known_shape();
  const Shape result = found.back->output()->known_shape();
  const auto works_on_them = [&](const RowOp& op) {  // a view may have made other rows
    const Value* const data = op.node->input(op.data);
    return data->known_shape().size() == source[0] * source[1] * columns_of(data);
  };
  const bool are_the_rows =
      x.size() > 0 && std::ranges::all_of(found.before, works_on_them) &&
      std::ranges::all_of(found.behind, works_on_them) && source[1] == x[0] && result[1] == x[0] &&
      source[0] == x.size(1, static_cast<int>(attributes.get_int("stack_axis", 0))) &&
      result[0] == source[0];
  return are_the_rows ? std::optional(std::move(found)) : std::nullopt;
}

/// The same node on rows of another order.
Expr apply(Builder& builder, const RowOp& op, const Expr& rows) {
  const std::int64_t columns = columns_of(op.node->input(op.data));
  std::vector<Expr> inputs;
  for (int i = 0; i < op.node->input_count(); ++i)
    inputs.push_back(builder.expr(op.node->input(i)));
  inputs[static_cast<std::size_t>(op.data)] =
      reshape(rows, {rows.shape().size() / columns, columns});
  return call(op.node->op_type(), inputs, op.node->attributes);
}

void rewrite(Graph& graph, const Match& match) {
  Builder builder(graph, match.back);
  Expr rows = builder.expr(match.source);
  for (const RowOp& op : match.before) rows = apply(builder, op, rows);
  // [sequence, batch..., 3, ...] -> [batch..., sequence, 3, ...]
  const Node& old = *match.attention;
  std::vector<std::int64_t> dims = old.input(0)->known_shape().dims();
  const std::int64_t stack_axis = old.attributes.get_int("stack_axis", 0);
  std::rotate(dims.begin(), dims.begin() + 1, dims.begin() + stack_axis);
  std::vector<Expr> inputs{reshape(rows, Shape(std::move(dims)))};
  for (int i = 1; i < old.input_count(); ++i) inputs.push_back(builder.expr(old.input(i)));
  Attributes attributes = old.attributes;
  attributes.set({"sequence_axis", stack_axis - 1});
  rows = call_multi("TiledAttention", kInternalDomain, inputs, 2, std::move(attributes)).front();
  for (const RowOp& op : match.behind) rows = apply(builder, op, rows);
  Value* const result = match.back->output();
  graph.replace_all_uses(result, reshape(rows, result->known_shape()).value());
}

}  // namespace

bool skip_row_transposes(Graph& graph) {
  std::vector<Match> found;
  for (const auto& node : graph.nodes()) {
    if (std::optional<Match> one = match(*node)) found.push_back(*std::move(one));
  }
  // The last first: an earlier one is then replaced in what reads it, too.
  for (const Match& one : std::views::reverse(found)) rewrite(graph, one);
  if (!found.empty()) eliminate_dead(graph);
  verify_in_debug(graph);
  return !found.empty();
}

}  // namespace graft::passes
