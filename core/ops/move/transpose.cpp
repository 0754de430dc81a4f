#include "core/base/at.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

/// Axes in their new order; the reversed order without the attribute.
std::vector<std::int64_t> permutation_of(const Node& node, int rank) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) at(order, i) = rank - 1 - i;
  return node.attributes.get_ints("perm", order);
}

void infer_transpose(InferContext& context) {
  const SymShape* const shape = context.shape(0);
  const DType dtype = context.dtype(0);
  if (shape == nullptr) {
    if (!context.attributes().has("perm")) return context.set_output(0, dtype);
    const auto rank = static_cast<std::int64_t>(context.attributes().get_ints("perm").size());
    return context.set_output(0, dtype, unknown_dims(rank));
  }
  const std::vector<std::int64_t> order = permutation_of(context.node(), shape->rank());
  if (static_cast<int>(order.size()) != shape->rank()) {
    context.fail(ErrorKind::shape, "perm has ", order.size(), " axes, wanted ", shape->rank(),
                 " for ", context.input(0).type());
  }
  std::vector<Dim> dims;
  for (const int axis : unique_axes(order, shape->rank(), context.node().label())) {
    dims.push_back((*shape)[axis]);
  }
  context.set_output(0, dtype, SymShape(std::move(dims)));
}

std::vector<Expr> transpose_rule(const Gradient& g) {
  const int rank = g.x().rank();
  const std::vector<std::int64_t> order = permutation_of(g.node(), rank);
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t axis = order[i] < 0 ? order[i] + rank : order[i];
    at(inverse, axis) = static_cast<std::int64_t>(i);
  }
  return {transpose(g.dy(), inverse)};
}

std::vector<Sample> transpose_samples() {
  using Order = std::vector<std::int64_t>;
  const auto with = [](std::string name, const Shape& shape, const Order& order) {
    return Sample{std::move(name), {{shape}}, {{"perm", order}}};
  };
  return {
      {"reversed", {{{2, 3, 4}}}},
      {"scalar", {{{}}}},
      with("matrix", {3, 5}, {1, 0}),
      with("matrix_of_blocks", {67, 131}, {1, 0}),
      with("to_channels_last", {2, 19, 5, 7}, {0, 2, 3, 1}),
      with("to_channels_first", {2, 5, 7, 19}, {0, 3, 1, 2}),
      with("batch_of_matrices", {3, 17, 33}, {0, 2, 1}),
      with("heads", {2, 5, 3, 4}, {0, 2, 1, 3}),
      with("heads_last", {2, 5, 3, 4}, {0, 2, 3, 1}),
      with("same", {2, 3}, {0, 1}),
      with("of_ones", {1, 3, 1, 2}, {2, 3, 0, 1}),
      with("rank_5", {2, 3, 2, 3, 4}, {4, 2, 0, 3, 1}),
      with("empty", {2, 0, 3}, {2, 0, 1}),
      {"bytes", {{.shape = {33, 20}, .low = 0, .high = 99, .dtype = DType::u8}}},
      {"long_integers", {{.shape = {33, 20}, .low = -99, .high = 99, .dtype = DType::i64}}},
  };
}

}  // namespace

void register_transpose(OpRegistry& registry) {
  registry.add({.name = "Transpose",
                .since = {{1}, {13}, {21}, {23}, {24}, {25}},
                .inputs = {{"data"}},
                .outputs = {{"transposed"}},
                .attributes = {{"perm", AttributeType::integers}},
                .infer = infer_transpose,
                .mixed_precision = kFollows,
                .only_moves = true,
                .backward = transpose_rule,
                .samples = transpose_samples});
}

}  // namespace graft
