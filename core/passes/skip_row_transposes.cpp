// Encoder layers with the batch in front transpose it behind the sequence, attend, and transpose
// back. What lies between works row by row, so rows may stay where they are: the attention takes
// its sequence from another axis.
#include <algorithm>

#include "core/base/at.h"
#include "core/ops/alias.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace row_transpose_skipping {

std::int64_t columns_of(const Value* value) {
  const Shape shape = value->known_shape();
  return shape[shape.rank() - 1];
}

/// Whether input `data` of the node holds rows that it works on one by one: a product with a
/// matrix, or a sum with a vector.
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

bool keeps_rows(const Node& node, int data) {
  return (data == 0 && is_view(node)) || is_row_op(node, data);
}

/// [a, b, c] -> [b, a, c]
bool swaps_rows(const Node& node) {
  return node.attributes.get_ints("perm") == std::vector<std::int64_t>{1, 0, 2};
}

/// Whether it attends, along its first axis, to what one value holds.
bool is_along_first_axis(const Node& attention) {
  const Attributes& attributes = attention.attributes;
  return attributes.get_int("sequence_axis", -2) == 0 && attributes.has("stack_axis") &&
         attention.output(1)->is_unused();
}

const Pattern source = any();  // [batch, sequence, columns]
const Pattern before = through(keeps_rows, once(op("Transpose", {source}, swaps_rows)));
const Pattern attention = internal_op("TiledAttention", {before}, is_along_first_axis);
const Pattern behind = through(keeps_rows, once(attention));

/// What makes rows of rows, in order.
std::vector<Step> row_ops(const Match& m, const Pattern& path) {
  std::vector<Step> steps = m.steps(path);
  std::erase_if(steps, [](const Step& step) { return is_view(*step.node); });
  return steps;
}

bool are_the_rows(const Match& m) {
  const Node& node = m.node(attention);
  const Shape x = node.input(0)->known_shape();
  const Shape from = m[source].shape();
  const Shape result = m.result()->known_shape();
  const auto works_on_them = [&](const Step& op) {  // a view may have made other rows
    const Value* const data = op.node->input(op.index);
    return data->known_shape().size() == from[0] * from[1] * columns_of(data);
  };
  return x.size() > 0 && std::ranges::all_of(row_ops(m, before), works_on_them) &&
         std::ranges::all_of(row_ops(m, behind), works_on_them) && from[1] == x[0] &&
         result[1] == x[0] &&
         from[0] == x.size(1, static_cast<int>(node.attributes.get_int("stack_axis", 0))) &&
         result[0] == from[0];
}

/// The same node on rows of another order.
Expr apply(Builder& builder, const Step& op, const Expr& rows) {
  const std::int64_t columns = columns_of(op.node->input(op.index));
  std::vector<Expr> inputs;
  for (Value* const input : op.node->inputs()) inputs.push_back(builder.expr(input));
  at(inputs, op.index) = reshape(rows, {rows.shape().size() / columns, columns});
  return call(op.node->op_type(), inputs, op.node->attributes);
}

Results attend_across_rows(const Match& m) {
  Expr rows = m[source];
  for (const Step& op : row_ops(m, before)) rows = apply(m.builder(), op, rows);
  // [sequence, batch..., 3, ...] -> [batch..., sequence, 3, ...]
  const Node& old = m.node(attention);
  std::vector<std::int64_t> dims = old.input(0)->known_shape().dims();
  const std::int64_t stack_axis = old.attributes.get_int("stack_axis", 0);
  std::rotate(dims.begin(), dims.begin() + 1, dims.begin() + stack_axis);
  std::vector<Expr> inputs{reshape(rows, Shape(std::move(dims)))};
  for (int i = 1; i < old.input_count(); ++i) inputs.push_back(m.builder().expr(old.input(i)));
  Attributes attributes = old.attributes;
  attributes.set({"sequence_axis", stack_axis - 1});
  rows = call_multi("TiledAttention", kInternalDomain, inputs, 2, std::move(attributes)).front();
  for (const Step& op : row_ops(m, behind)) rows = apply(m.builder(), op, rows);
  return reshape(rows, m.result()->known_shape());
}

/// A layer with two heads of depth 4 over 5 tokens, its batch of 2 behind the sequence.
Expr sample_layer(SampleNet& net, const Expr& rows, const Expr& bias = {}) {
  const Expr stacks = net.input({24}) + matmul(rows, net.input({6, 24}));
  const Attributes attributes{{"sequence_axis", 0}, {"stack_axis", 2}};
  const Expr y = call_multi("TiledAttention", kInternalDomain,
                            {reshape(stacks, {5, 2, 3, 2, 4}), {}, {}, bias}, 2, attributes)
                     .front();
  return reshape(call("Gemm", {reshape(y, {10, 8}), net.input({8, 6}), net.input({6})}), {5, 2, 6});
}
Expr swap_rows(const Expr& rows) {
  return transpose(rows, {1, 0, 2});
}

const std::vector<Rewrite> kRewrites{
    {.name = "skip_row_transposes",
     .match = op("Transpose", {behind}, swaps_rows),
     .where = are_the_rows,
     .to = attend_across_rows,
     .samples = {{"one_layer",
                  [](SampleNet& net) {
                    return swap_rows(sample_layer(net, swap_rows(net.input({2, 5, 6}))));
                  }},
                 {"with_a_bias",
                  [](SampleNet& net) {
                    const Expr rows = swap_rows(net.input({2, 5, 6}));
                    return swap_rows(sample_layer(net, rows, net.input({5, 5})));
                  }},
                 {"one_behind_another",
                  [](SampleNet& net) {
                    const Expr rows = swap_rows(net.input({2, 5, 6}));
                    const Expr first = swap_rows(sample_layer(net, rows));
                    return swap_rows(sample_layer(net, swap_rows(first)));
                  }}}},
};

}  // namespace row_transpose_skipping
}  // namespace

std::span<const Rewrite> skip_row_transposes_rewrites() {
  return row_transpose_skipping::kRewrites;
}

bool skip_row_transposes(Graph& graph) {
  return rewrite(graph, row_transpose_skipping::kRewrites);
}

}  // namespace graft::passes
