#include "core/ops/move/move_lowering.h"
#include "core/ops/move/scatter_rule.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

int gather_axis(const InferContext& context, int rank) {
  return normalize_axis(context.attributes().get_int("axis", 0), rank, context.node().label());
}

void infer_gather(InferContext& context) {
  require_index_type(context, 1);
  const DType dtype = context.dtype(0);
  const SymShape* const data = context.shape(0);
  const SymShape* const indices = context.shape(1);
  if (data == nullptr) return context.set_output(0, dtype);
  const int axis = gather_axis(context, data->rank());
  check_indices(context, 1, (*data)[axis]);
  if (indices == nullptr) return context.set_output(0, dtype);
  std::vector<Dim> dims(data->begin(), data->begin() + axis);
  dims.insert(dims.end(), indices->begin(), indices->end());
  dims.insert(dims.end(), data->begin() + axis + 1, data->end());
  context.set_output(0, dtype, SymShape(std::move(dims)));
}

/// Attributes axis (not negative) and size, the dim of that axis in the result.
void infer_gather_grad(InferContext& context) {
  require_index_type(context, 1);
  const std::int64_t axis = context.attributes().get_int("axis", 0);
  const std::int64_t size = context.attributes().get_int("size", -1);
  if (size < 0) context.fail(ErrorKind::shape, "size is ", size);
  check_indices(context, 1, size);
  const DType dtype = context.dtype(0);
  const SymShape* const dy = context.shape(0);
  const SymShape* const indices = context.shape(1);
  if (dy == nullptr || indices == nullptr) return context.set_output(0, dtype);
  if (axis < 0 || axis + indices->rank() > dy->rank()) {
    context.fail(ErrorKind::shape, "axis ", axis, " out of range for ", context.input(0).type());
  }
  for (int i = 0; i < indices->rank(); ++i) {
    const Dim& found = (*dy)[static_cast<int>(axis) + i];
    if (found.is_known() && (*indices)[i].is_known() && !found.same_as((*indices)[i])) {
      context.fail(ErrorKind::shape, context.input(0).type(), " and ", context.input(1).type(),
                   " do not fit at axis ", axis);
    }
  }
  std::vector<Dim> dims(dy->begin(), dy->begin() + axis);
  dims.emplace_back(size);
  dims.insert(dims.end(), dy->begin() + axis + indices->rank(), dy->end());
  context.set_output(0, dtype, SymShape(std::move(dims)));
}

/// Elements taken more than once gather the sum of their gradients.
std::vector<Expr> gather_rule(const Gradient& g) {
  const Shape data = g.x().shape();
  const int axis = normalize_axis(g.attributes().get_int("axis", 0), data.rank(), "gather");
  const Attributes attributes{{"axis", axis}, {"size", data[axis]}};
  return {call_internal("GatherGrad", {g.dy(), g.x(1)}, attributes)};
}

std::vector<Expr> gather_grad_rule(const Gradient& g) {
  return {call("Gather", {g.dy(), g.x(1)}, {{"axis", g.attributes().get_int("axis", 0)}})};
}

void infer_gather_elements(InferContext& context) {
  require_index_type(context, 1);
  const DType dtype = context.dtype(0);
  const SymShape* const data = context.shape(0);
  const SymShape* const indices = context.shape(1);
  if (data != nullptr) {
    const int axis = gather_axis(context, data->rank());
    context.require_rank(1, data->rank(), data->rank());
    check_indices(context, 1, (*data)[axis]);
    for (int i = 0; indices != nullptr && i < data->rank(); ++i) {
      const Dim& most = (*data)[i];
      const Dim& found = (*indices)[i];
      if (i != axis && most.is_known() && found.is_known() && found.value() > most.value()) {
        context.fail(ErrorKind::shape, "indices ", *indices, " exceed ", context.input(0).type(),
                     " in axis ", i);
      }
    }
  }
  if (indices == nullptr) return context.set_output(0, dtype);
  context.set_output(0, dtype, *indices);
}

void infer_scatter_elements(InferContext& context) {
  require_index_type(context, 1);
  context.require_same_dtype({0, 2});
  check_reduction(context);
  context.copy_type(0);
  const SymShape* const data = context.shape(0);
  const SymShape* const indices = context.shape(1);
  const SymShape* const updates = context.shape(2);
  if (data == nullptr) return;
  const int axis = gather_axis(context, data->rank());
  check_indices(context, 1, (*data)[axis]);
  for (const int i : {1, 2}) context.require_rank(i, data->rank(), data->rank());
  for (int i = 0; indices != nullptr && i < data->rank(); ++i) {
    const Dim& found = (*indices)[i];
    if (!found.is_known()) continue;
    const bool exceeds = i != axis && (*data)[i].is_known() && found.value() > (*data)[i].value();
    const bool differs =
        updates != nullptr && (*updates)[i].is_known() && !found.same_as((*updates)[i]);
    if (exceeds || differs) {
      context.fail(ErrorKind::shape, "indices ", *indices, " do not fit data ",
                   context.input(0).type(), " and updates in axis ", i);
    }
  }
}

Attributes axis_attribute(const Gradient& g) {
  return {{"axis", g.attributes().get_int("axis", 0)}};
}

std::vector<Expr> gather_elements_rule(const Gradient& g) {
  Attributes attributes = axis_attribute(g);
  attributes.set({"reduction", "add"});
  return {call("ScatterElements", {zeros_like(g.x()), g.x(1), g.dy()}, attributes)};
}

std::vector<Expr> scatter_elements_rule(const Gradient& g) {
  const Attributes axis = axis_attribute(g);
  const Expr indices = g.x(1);
  return scatter_gradients(
      g, {.scatter =
              [=](const Expr& data, const Expr& updates, std::string_view reduction) {
                Attributes attributes = axis;
                attributes.set({"reduction", std::string(reduction)});
                return call("ScatterElements", {data, indices, updates}, attributes);
              },
          .gather =
              [=](const Expr& x) {
                return call("GatherElements", {x, indices}, axis);
              }});
}

SampleInput gather_indices(const Shape& shape, std::vector<double> values,
                           DType dtype = DType::i64) {
  return {.shape = shape, .values = std::move(values), .dtype = dtype};
}

std::vector<Sample> gather_samples() {
  const SampleInput data{{4, 5}};
  const Attributes axis_1{{"axis", 1}};
  return {
      {"rows", {data, gather_indices({3}, {2, 0, 2})}},
      {"columns", {data, gather_indices({2}, {4, 1})}, axis_1},
      {"negative_axis", {data, gather_indices({2}, {4, 1})}, {{"axis", -1}}},
      {"negative_indices", {data, gather_indices({3}, {-1, -4, 0})}},
      {"scalar_index", {data, gather_indices({}, {1})}},
      {"matrix_of_indices", {data, gather_indices({2, 2}, {1, 0, 3, 3})}},
      {"matrix_of_columns", {{{2, 5, 3}}, gather_indices({2, 2}, {1, 0, 4, 1})}, axis_1},
      {"i32", {data, gather_indices({2}, {3, 1}, DType::i32)}},
      {"constant", {data, ints({1, 1})}},
      {"no_indices", {data, {.shape = {0}, .dtype = DType::i64}}},
      {"no_columns", {{{4, 0}}, gather_indices({2}, {3, 1})}},
      {"vector", {{{6}}, gather_indices({3}, {5, 0, 5})}},
      {"of_one", {{{1, 3}}, gather_indices({1}, {0})}},
      {"of_one_repeated", {{{1, 1}}, gather_indices({3}, {0, -1, 0})}},
      {"embedding", {{{7, 130}}, gather_indices({2, 3}, {0, 6, 6, 1, 0, 6})}},
      {"integers", {{.shape = {4}, .low = -9, .high = 9, .dtype = DType::i64}, ints({3, 0})}},
  };
}

std::vector<Sample> gather_grad_samples() {
  const auto with = [](int axis, int size) { return Attributes{{"axis", axis}, {"size", size}}; };
  return {
      {"repeated_rows", {{{3, 2}}, gather_indices({3}, {1, 1, -1})}, with(0, 4)},
      {"columns", {{{2, 3, 2}}, gather_indices({3}, {0, 2, 0})}, with(1, 3)},
      {"matrix_of_indices", {{{2, 2, 3}}, gather_indices({2, 2}, {1, 0, 1, 1})}, with(0, 2)},
      {"scalar_index", {{{3}}, gather_indices({}, {1})}, with(0, 2)},
      {"no_indices", {{{0, 3}}, {.shape = {0}, .dtype = DType::i64}}, with(0, 2)},
      {"wide", {{{4, 300}}, gather_indices({4}, {2, 0, 2, 2})}, with(0, 3)},
      {"i32", {{{2}}, gather_indices({2}, {3, 1}, DType::i32)}, with(0, 4)},
      {"of_one", {{{3, 1}}, gather_indices({3}, {0, -1, 0})}, with(0, 1)},
  };
}

std::vector<Sample> gather_elements_samples() {
  const SampleInput data{{3, 4}};
  return {
      {"axis_0", {data, gather_indices({2, 4}, {0, 1, 2, 0, 2, 2, 0, 1})}},
      {"axis_1", {data, gather_indices({3, 2}, {3, 0, 1, 1, 2, 3})}, {{"axis", 1}}},
      {"negative", {data, gather_indices({3, 2}, {-1, 0, -4, 1, 2, 3})}, {{"axis", -1}}},
      {"narrower", {data, gather_indices({2, 2}, {0, 1, 2, 0})}},
      {"i32", {data, gather_indices({1, 4}, {0, 1, 2, 0}, DType::i32)}},
      {"of_one", {{{1, 4}}, gather_indices({2, 4}, {0, 0, -1, 0, 0, 0, 0, 0})}},
      {"no_indices", {data, {.shape = {0, 4}, .dtype = DType::i64}}},
  };
}

std::vector<Sample> scatter_samples() {
  const SampleInput data{{3, 4}};
  const SampleInput updates{{2, 2}};
  const SampleInput apart = gather_indices({2, 2}, {0, 2, 1, 0});
  return {
      {"plain", {data, apart, updates}},
      {"axis_1", {data, apart, updates}, {{"axis", 1}}},
      {"negative", {data, gather_indices({2, 2}, {-1, 0, 1, -1}), updates}},
      {"no_updates", {data, {.shape = {0, 4}, .dtype = DType::i64}, {{0, 4}}}},
      {"one_column", {{{3, 1}}, gather_indices({1, 1}, {2}), {{1, 1}}}},
  };
}

/// Those of Scatter, then the reductions.
std::vector<Sample> scatter_elements_samples() {
  const SampleInput data{{3, 4}};
  const SampleInput updates{{2, 2}};
  const SampleInput repeated = gather_indices({2, 2}, {1, 1, 1, 0});
  const auto reduction = [](const char* name) { return Attributes{{"reduction", name}}; };
  std::vector<Sample> samples = scatter_samples();
  samples.push_back({"add", {data, repeated, updates}, reduction("add")});
  const SampleInput apart_data{.shape = {3, 4}, .low = 0.5, .high = 2.0, .distinct = true};
  const SampleInput apart_updates{.shape = {2, 2}, .values = {0.7301, 1.8103, 1.2107, 0.6109}};
  for (const char* name : {"mul", "max", "min"}) {
    samples.push_back({name, {apart_data, repeated, apart_updates}, reduction(name)});
  }
  return samples;
}

}  // namespace

/// Gather, GatherElements, ScatterElements (once Scatter) and the internal GatherGrad. Indices
/// known before the run must be in range; others are clamped into it by the kernels, which cannot
/// refuse.
void register_gather(OpRegistry& registry) {
  const std::vector<AttributeDef> axis{{"axis", AttributeType::integer}};
  registry.add({.name = "Gather",
                .since = {{1}, {11, "negative indices"}, {13}},
                .inputs = {{"data"}, {"indices"}},
                .outputs = {{"output"}},
                .attributes = axis,
                .infer = infer_gather,
                .weights = {0},
                .only_moves = true,
                .backward = gather_rule,
                .samples = gather_samples});
  registry.add({.name = "GatherGrad",
                .domain = kInternalDomain,
                .inputs = {{"dy"}, {"indices"}},
                .outputs = {{"dx"}},
                .attributes = {{"axis", AttributeType::integer, true},
                               {"size", AttributeType::integer, true}},
                .infer = infer_gather_grad,
                .lower = lower_gather_grad,
                .backward = gather_grad_rule,
                .samples = gather_grad_samples});
  registry.add({.name = "GatherElements",
                .since = {{11}, {13}},
                .inputs = {{"data"}, {"indices"}},
                .outputs = {{"output"}},
                .attributes = axis,
                .infer = infer_gather_elements,
                .only_moves = true,
                .backward = gather_elements_rule,
                .samples = gather_elements_samples});
  // The name of ScatterElements before opset 11.
  registry.add({.name = "Scatter",
                .since = {{9}, {11, "deprecated"}},
                .inputs = {{"data"}, {"indices"}, {"updates"}},
                .outputs = {{"output"}},
                .attributes = axis,
                .infer = infer_scatter_elements,
                .aliases = {{0, 0, AliasKind::in_place}},
                .backward = scatter_elements_rule,
                .samples = scatter_samples});
  registry.add(
      {.name = "ScatterElements",
       .since = {{11}, {13}, {16, "reductions"}, {18, "reductions max and min"}},
       .inputs = {{"data"}, {"indices"}, {"updates"}},
       .outputs = {{"output"}},
       .attributes = {{"axis", AttributeType::integer}, {"reduction", AttributeType::text}},
       .infer = infer_scatter_elements,
       .aliases = {{0, 0, AliasKind::in_place}},
       .backward = scatter_elements_rule,
       .samples = scatter_elements_samples});
}

}  // namespace graft
