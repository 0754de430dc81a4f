#include "core/ops/move/concat_split.h"

#include "core/base/at.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {

namespace {

/// From the input or, before opset 13, the attribute.
std::vector<std::int64_t> check_sizes(const Node& node, std::vector<std::int64_t> sizes,
                                      std::int64_t dim) {
  std::int64_t left = dim;
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > left) left = -1;
    if (left >= 0) left -= size;
  }
  if (left != 0 || static_cast<int>(sizes.size()) != node.output_count()) {
    fail(ErrorKind::shape, node.label(), ": the ", sizes.size(),
         " sizes in split do not add up to ", dim, " over ", node.output_count(), " outputs");
  }
  return sizes;
}

}  // namespace

std::optional<std::vector<std::int64_t>> split_sizes(const Node& node, std::int64_t dim) {
  if (node.input(1) != nullptr) {
    const Tensor sizes = constant_of(node.input(1));
    if (!sizes.defined()) return std::nullopt;
    return check_sizes(node, to_int64(sizes), dim);
  }
  if (node.attributes.has("split")) {
    return check_sizes(node, node.attributes.get_ints("split"), dim);
  }
  const auto count = static_cast<std::int64_t>(node.output_count());
  const std::int64_t chunk = dim / count + (dim % count == 0 ? 0 : 1);
  const std::int64_t last = dim - chunk * (count - 1);
  if (last < 0 || (last != chunk && !node.attributes.has("num_outputs"))) {
    fail(ErrorKind::shape, node.label(), ": a dim of ", dim, " cannot be split into ", count,
         " equal parts");
  }
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(count), chunk);
  sizes.back() = last;
  return sizes;
}

namespace {

void infer_concat(InferContext& context) {
  if (context.input_count() == 0) context.fail(ErrorKind::model, "no inputs");
  if (!context.attributes().has("axis")) context.fail(ErrorKind::model, "axis is missing");
  const std::int64_t given = context.attributes().get_int("axis", 0);
  std::optional<SymShape> result;
  bool all_known = true;
  for (int i = 0; i < context.input_count(); ++i) {
    context.input(i);
    context.require_same_dtype({0, i});
    const SymShape* const shape = context.shape(i);
    if (shape == nullptr) {
      all_known = false;
      continue;
    }
    const int axis = normalize_axis(given, shape->rank(), context.node().label());
    if (!result) {
      result = *shape;
      continue;
    }
    context.require_rank(i, result->rank(), result->rank());
    for (int d = 0; d < result->rank(); ++d) {
      Dim& joined = (*result)[d];
      const Dim& dim = (*shape)[d];
      if (d == axis) {
        const bool known = joined.is_known() && dim.is_known();
        joined = known ? Dim(checked_add(joined.value(), dim.value())) : Dim();
      } else if (!joined.is_known()) {
        joined = dim.is_known() || joined.symbol().empty() ? dim : joined;
      } else if (dim.is_known() && !dim.same_as(joined)) {
        context.fail(ErrorKind::shape, "input '", context.input(i).name(), "' is ",
                     context.input(i).type(), ", wanted ", joined, " in axis ", d);
      }
    }
  }
  if (result && !all_known) {
    (*result)[normalize_axis(given, result->rank(), context.node().label())] = Dim();
  }
  context.set_output(0, context.dtype(0), result);
}

void infer_split(InferContext& context) {
  const Node& node = context.node();
  const int count = node.output_count();
  const std::int64_t wanted = context.attributes().get_int("num_outputs", count);
  if (wanted != count || count == 0) {
    context.fail(ErrorKind::model, "num_outputs is ", wanted, ", but there are ", count,
                 " outputs");
  }
  if (context.has_input(1) && context.attributes().has("num_outputs")) {
    context.fail(ErrorKind::model, "has both the input split and num_outputs");
  }
  list_length(context, 1);
  const DType dtype = context.dtype(0);
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) {
    for (int i = 0; i < count; ++i) context.set_output(i, dtype);
    return;
  }
  const int axis =
      normalize_axis(context.attributes().get_int("axis", 0), shape->rank(), node.label());
  std::optional<std::vector<std::int64_t>> sizes;
  if ((*shape)[axis].is_known()) sizes = split_sizes(node, (*shape)[axis].value());
  for (int i = 0; i < count; ++i) {
    SymShape piece = *shape;
    piece[axis] = sizes ? Dim(at(*sizes, i)) : Dim();
    context.set_output(i, dtype, std::move(piece));
  }
}

void upgrade_concat(Node& node, std::int64_t from, Builder&) {
  if (from < 4 && !node.attributes.has("axis")) node.attributes.set({"axis", 1});
}

void upgrade_split(Node& node, std::int64_t from, Builder& builder) {
  if (from < 13) ints_attribute_to_input(node, builder, "split", 1);
}

/// Split of dy, where the axis dims are those of the inputs.
std::vector<Expr> concat_rule(const Gradient& g) {
  const int count = g.input_count();
  const int axis = normalize_axis(g.attributes().get_int("axis", 0), g.y().rank(), "concat");
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < count; ++i) sizes.push_back(g.x(i).shape()[axis]);
  return call_multi("Split", "", {g.dy(), constant_ints(g.builder(), sizes)}, count,
                    {{"axis", axis}});
}

std::vector<Expr> split_rule(const Gradient& g) {
  const Shape shape = g.x().shape();
  const int axis = normalize_axis(g.attributes().get_int("axis", 0), shape.rank(), "split");
  const auto sizes = split_sizes(g.node(), shape[axis]);
  std::vector<Expr> pieces;
  for (int i = 0; i < g.output_count(); ++i) {
    if (g.node().output(i) != nullptr) {
      pieces.push_back(g.dy(i));
      continue;
    }
    if (!sizes) fail(ErrorKind::unsupported, g.node().label(), ": sizes are not known");
    std::vector<std::int64_t> dims = shape.dims();
    at(dims, axis) = at(*sizes, i);
    pieces.push_back(expand(constant_like(g.x(), 0.0), Shape(std::move(dims))));
  }
  return {call("Concat", pieces, {{"axis", axis}})};
}

std::vector<Sample> concat_samples() {
  return {
      {"rows", {{{2, 3}}, {{1, 3}}}, {{"axis", 0}}},
      {"columns", {{{2, 3}}, {{2, 4}}, {{2, 1}}}, {{"axis", 1}}},
      {"negative_axis", {{{2, 3, 2}}, {{2, 1, 2}}}, {{"axis", -2}}},
      {"one_input", {{{2, 3}}}, {{"axis", 1}}},
      {"with_empty", {{{2, 0}}, {{2, 3}}}, {{"axis", 1}}},
      {"all_empty", {{{0, 3}}, {{0, 3}}}, {{"axis", 0}}},
      {"channels", {{{2, 3, 5, 7}}, {{2, 8, 5, 7}}}, {{"axis", 1}}},
      {"over_threads", {{{3, 9000}}, {{3, 9001}}}, {{"axis", 1}}},
      {"integers",
       {{.shape = {2}, .low = -9, .high = 9, .dtype = DType::i64},
        {.shape = {3}, .low = -9, .high = 9, .dtype = DType::i64}},
       {{"axis", 0}}},
  };
}

std::vector<Sample> split_samples() {
  return {
      {"sizes", {{{6, 2}}, ints({1, 3, 2})}, {}, 3},
      {"columns", {{{2, 6}}, ints({4, 2})}, {{"axis", 1}}, 2},
      {"negative_axis", {{{2, 6, 2}}, ints({4, 2})}, {{"axis", -2}}, 2},
      {"even", {{{6, 2}}}, {{"num_outputs", 3}}, 3},
      {"uneven", {{{7, 2}}}, {{"num_outputs", 3}}, 3},
      {"one", {{{3}}}, {{"num_outputs", 1}}, 1},
      {"with_empty", {{{3, 2}}, ints({0, 3})}, {}, 2},
      {"one_column", {{{3, 1}}, ints({1, 2})}, {}, 2},
      {"of_empty", {{{0, 2}}}, {{"num_outputs", 2}}, 2},
  };
}

}  // namespace

/// Concat and Split: each is the other's gradient.
void register_concat_split(OpRegistry& registry) {
  registry.add({.name = "Concat",
                .since = {{1}, {4, "axis is required"}, {11, "negative axis"}, {13}},
                .inputs = {{"inputs", Arity::variadic}},
                .outputs = {{"concat_result"}},
                .attributes = {{"axis", AttributeType::integer, true}},
                .infer = infer_concat,
                .upgrade = upgrade_concat,
                .mixed_precision = kFollows,
                .only_moves = true,
                .backward = concat_rule,
                .samples = concat_samples});
  registry.add(
      {.name = "Split",
       .since = {{2}, {11, "negative axis"}, {13, "split as input"}, {18, "num_outputs"}},
       .inputs = {{"input"}, {"split", Arity::optional}},
       .outputs = {{"outputs", Arity::variadic}},
       .attributes = {{"axis", AttributeType::integer}, {"num_outputs", AttributeType::integer}},
       .infer = infer_split,
       .upgrade = upgrade_split,
       .mixed_precision = kFollows,
       .only_moves = true,
       .backward = split_rule,
       .samples = split_samples});
}

}  // namespace graft
