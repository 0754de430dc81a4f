#include <algorithm>

#include "core/ops/move/nonzero.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {

std::vector<std::int64_t> true_indices(const Tensor& condition, std::int64_t limit,
                                       std::string_view who) {
  if (condition.dtype() != DType::boolean || condition.rank() != 1) {
    fail(ErrorKind::type, who, ": the condition is ", condition, ", wanted bool of rank 1");
  }
  if (condition.size() > limit) {
    fail(ErrorKind::shape, who, ": the condition has ", condition.size(), " elements, the input ",
         limit);
  }
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < condition.size(); ++i) {
    if (condition.values<const bool>()[static_cast<std::size_t>(i)]) indices.push_back(i);
  }
  return indices;
}

namespace {

void infer_nonzero(InferContext& context) {
  const SymShape* const shape = context.shape(0);
  context.set_output(0, DType::i64, SymShape{shape == nullptr ? Dim() : Dim(shape->rank()), Dim()});
}

/// The axis of the input along which entries are chosen; nullopt when the input is flattened.
std::optional<int> compress_axis(const Node& node, int rank) {
  if (!node.attributes.has("axis")) return std::nullopt;
  return normalize_axis(node.attributes.get_int("axis", 0), rank, node.label());
}

/// The input with a chosen number of entries along the axis, or of elements.
std::optional<SymShape> chosen_shape(const InferContext& context, const Dim& count) {
  if (!context.attributes().has("axis")) return SymShape{count};
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) return std::nullopt;
  SymShape result = *shape;
  result[*compress_axis(context.node(), shape->rank())] = count;
  return result;
}

void infer_compress(InferContext& context) {
  const SymShape* const shape = context.shape(0);
  const Tensor condition = context.constant(1);
  Dim count;
  if (condition.defined() && shape != nullptr && shape->known()) {
    const auto axis = compress_axis(context.node(), shape->rank());
    const std::int64_t limit = axis ? (*shape)[*axis].value() : shape->known()->size();
    const auto indices = true_indices(condition, limit, context.node().label());
    count = static_cast<std::int64_t>(indices.size());
  }
  context.set_output(0, context.dtype(0), chosen_shape(context, count));
}

/// With a condition that is known before the run: a Gather.
std::vector<Expr> expand_compress(const Node& node, Builder& builder) {
  const Expr x = builder.expr(node.input(0));
  const Tensor condition = constant_of(node.input(1));
  if (!condition.defined()) {
    fail(ErrorKind::unsupported, node.label(), ": which elements it takes depends on data");
  }
  const auto axis = compress_axis(node, x.rank());
  const Shape flat{x.shape().size()};
  const auto indices = true_indices(condition, axis ? x.shape()[*axis] : flat[0], node.label());
  return {call("Gather", {axis ? x : reshape(x, flat), constant_ints(builder, indices)},
               {{"axis", axis.value_or(0)}})};
}

void infer_unique(InferContext& context) {
  context.set_output(0, context.dtype(0), chosen_shape(context, {}));
  for (const int i : {1, 2, 3}) context.set_output(i, DType::i64, SymShape{Dim()});
}

std::vector<Sample> nonzero_samples() {
  const auto flags = [](const Shape& shape, std::vector<double> values, DType dtype) {
    return SampleInput{.shape = shape, .values = std::move(values), .dtype = dtype};
  };
  return {
      {"matrix", {flags({2, 3}, {0, 1.5, 0, -2, 0, 3}, DType::f32)}},
      {"flags", {flags({4}, {0, 1, 1, 0}, DType::boolean)}},
      {"integers", {flags({2, 2, 1}, {7, 0, 0, 1}, DType::i64)}},
      {"none", {flags({3}, {0, 0, 0}, DType::f32)}},
      {"scalar", {flags({}, {2}, DType::f32)}},
      {"empty", {{{0, 3}}}},
  };
}

std::vector<Sample> compress_samples() {
  const auto mask = [](std::vector<double> values, bool is_constant) {
    const auto size = static_cast<std::int64_t>(values.size());
    return SampleInput{.shape = {size},
                       .values = std::move(values),
                       .dtype = DType::boolean,
                       .is_constant = is_constant};
  };
  const SampleInput x{{3, 4}};
  return {
      {"flat", {x, mask({0, 1, 0, 0, 1, 1}, false)}},
      {"rows", {x, mask({1, 0, 1}, true)}, {{"axis", 0}}},
      {"columns", {x, mask({0, 1, 1}, true)}, {{"axis", -1}}},
      {"none", {x, mask({0, 0}, true)}, {{"axis", 1}}},
      {"flat_constant", {x, mask({0, 1, 0, 0, 1, 1}, true)}},
      {"of_empty", {{{3, 0}}, mask({1, 0, 1}, true)}, {{"axis", 0}}},
      {"one_row", {{{1, 4}}, mask({1}, true)}, {{"axis", 0}}},
  };
}

std::vector<Sample> unique_samples() {
  const SampleInput list{.shape = {6}, .values = {2, 1, 1, 3, 4, 3}};
  const SampleInput rows{.shape = {3, 3}, .values = {1, 0, 0, 1, 0, 0, 2, 3, 4}};
  return {
      {"sorted", {list}, {}, 4},
      {"in_order", {list}, {{"sorted", 0}}, 4},
      {"values_alone", {list}},
      {"rows", {rows}, {{"axis", 0}}, 4},
      {"columns", {rows}, {{"axis", -1}}, 4},
      {"integers", {{.shape = {2, 2}, .values = {5, -5, 5, 0}, .dtype = DType::i64}}, {}, 4},
      {"empty", {{{0}}}, {}, 4},
  };
}

}  // namespace

/// NonZero, Compress, Unique: how many elements they give depends on data.
void register_nonzero(OpRegistry& registry) {
  registry.add({.name = "NonZero",
                .since = {{9}, {13}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .infer = infer_nonzero,
                .is_dynamic = true,
                .backward = NotDifferentiable{"it gives indices"},
                .samples = nonzero_samples});
  registry.add({.name = "Compress",
                .since = {{9}, {11}},
                .inputs = {{"input"}, {"condition"}},
                .outputs = {{"output"}},
                .attributes = {{"axis", AttributeType::integer}},
                .infer = infer_compress,
                .is_dynamic = true,
                .backward = Decomposition{expand_compress},
                .samples = compress_samples});
  registry.add(
      {.name = "Unique",
       .since = {{11}, {28}},
       .inputs = {{"X"}},
       .outputs = {{"Y"},
                   {"indices", Arity::optional},
                   {"inverse_indices", Arity::optional},
                   {"counts", Arity::optional}},
       .attributes = {{"axis", AttributeType::integer}, {"sorted", AttributeType::integer}},
       .infer = infer_unique,
       .is_dynamic = true,
       .backward = NotDifferentiable{"how many elements it gives depends on their values"},
       .samples = unique_samples});
}

}  // namespace graft
