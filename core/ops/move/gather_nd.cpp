#include "core/ops/move/move_lowering.h"
#include "core/ops/move/scatter_rule.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

/// Attributes and shapes of GatherND: `depth` indices address one slice of the data.
struct GatherNd {
  int batch_dims;
  int depth;
};

/// nullopt when the ranks or the depth are not known. Throws Error{shape} where they do not fit.
std::optional<GatherNd> gather_nd(const InferContext& context, const SymShape* data,
                                  const SymShape* indices, std::int64_t batch_dims) {
  if (indices != nullptr && indices->rank() == 0) {
    context.fail(ErrorKind::shape, "indices are a scalar, wanted rank 1 at least");
  }
  if (batch_dims < 0) context.fail(ErrorKind::shape, "batch_dims is ", batch_dims);
  if (data == nullptr || indices == nullptr) return std::nullopt;
  const Dim& last = (*indices)[indices->rank() - 1];
  if (batch_dims >= std::min(data->rank(), indices->rank())) {
    context.fail(ErrorKind::shape, "batch_dims ", batch_dims, " out of range for data ", *data,
                 " and indices ", *indices);
  }
  if (!last.is_known()) return std::nullopt;
  if (last.value() < 1 || last.value() > data->rank() - batch_dims) {
    context.fail(ErrorKind::shape, "the last dim of indices ", *indices, " must be in [1,",
                 data->rank() - batch_dims, "] for data ", *data);
  }
  return GatherNd{static_cast<int>(batch_dims), static_cast<int>(last.value())};
}

/// Dims of the addressed slices: indices' but the last, then the data's beyond the addressed ones.
SymShape slices_shape(const SymShape& data, const SymShape& indices, const GatherNd& nd) {
  std::vector<Dim> dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), data.begin() + nd.batch_dims + nd.depth, data.end());
  return SymShape(std::move(dims));
}

/// Checks the indices that are known, and that none points into an empty dim.
void check_tuples(const InferContext& context, const SymShape& data, const SymShape& indices,
                  const GatherNd& nd) {
  const std::optional<Shape> shape = indices.known();
  const auto values = context.constant_ints(1);
  for (int i = 0; i < nd.depth; ++i) {
    const Dim& dim = data[nd.batch_dims + i];
    if (!dim.is_known()) continue;
    if (dim.value() == 0 && shape && shape->size() > 0) {
      context.fail(ErrorKind::shape, "indices ", indices, " into an axis without elements");
    }
    for (std::size_t at = static_cast<std::size_t>(i); values && at < values->size();
         at += static_cast<std::size_t>(nd.depth)) {
      const std::int64_t value = (*values)[at];
      if (value < -dim.value() || value >= dim.value()) {
        context.fail(ErrorKind::shape, "index ", value, " out of range for a dim of ", dim);
      }
    }
  }
}

void check_batch(const InferContext& context, const SymShape& data, const SymShape& indices,
                 int batch_dims) {
  for (int i = 0; i < batch_dims; ++i) {
    if (data[i].is_known() && indices[i].is_known() && !data[i].same_as(indices[i])) {
      context.fail(ErrorKind::shape, "data ", data, " and indices ", indices,
                   " differ in batch axis ", i);
    }
  }
}

void infer_gather_nd(InferContext& context) {
  require_index_type(context, 1);
  const SymShape* const data = context.shape(0);
  const SymShape* const indices = context.shape(1);
  const auto nd = gather_nd(context, data, indices, context.attributes().get_int("batch_dims", 0));
  if (!nd) return context.set_output(0, context.dtype(0));
  check_batch(context, *data, *indices, nd->batch_dims);
  check_tuples(context, *data, *indices, *nd);
  context.set_output(0, context.dtype(0), slices_shape(*data, *indices, *nd));
}

/// Attributes shape (of the result) and batch_dims; dy has the shape of GatherND's result.
void infer_gather_nd_grad(InferContext& context) {
  require_index_type(context, 1);
  const SymShape data = Shape(context.attributes().get_ints("shape"));
  const SymShape* const indices = context.shape(1);
  const auto nd = gather_nd(context, &data, indices, context.attributes().get_int("batch_dims", 0));
  if (nd) {
    check_batch(context, data, *indices, nd->batch_dims);
    check_tuples(context, data, *indices, *nd);
    const SymShape wanted = slices_shape(data, *indices, *nd);
    const SymShape* const dy = context.shape(0);
    context.require_rank(0, wanted.rank(), wanted.rank());
    for (int i = 0; dy != nullptr && i < wanted.rank(); ++i) {
      if ((*dy)[i].is_known() && wanted[i].is_known() && !(*dy)[i].same_as(wanted[i])) {
        context.fail(ErrorKind::shape, "dy is ", *dy, ", wanted ", wanted);
      }
    }
  }
  context.set_output(0, context.dtype(0), data);
}

void infer_scatter_nd(InferContext& context) {
  require_index_type(context, 1);
  context.require_same_dtype({0, 2});
  check_reduction(context);
  context.copy_type(0);
  const SymShape* const data = context.shape(0);
  const SymShape* const indices = context.shape(1);
  const SymShape* const updates = context.shape(2);
  const auto nd = gather_nd(context, data, indices, 0);
  if (!nd) return;
  check_tuples(context, *data, *indices, *nd);
  const SymShape wanted = slices_shape(*data, *indices, *nd);
  context.require_rank(2, wanted.rank(), wanted.rank());
  for (int i = 0; updates != nullptr && i < wanted.rank(); ++i) {
    if ((*updates)[i].is_known() && wanted[i].is_known() && !(*updates)[i].same_as(wanted[i])) {
      context.fail(ErrorKind::shape, "updates are ", *updates, ", wanted ", wanted);
    }
  }
}

std::vector<Expr> gather_nd_rule(const Gradient& g) {
  const std::int64_t batch_dims = g.attributes().get_int("batch_dims", 0);
  return {call_internal("GatherNDGrad", {g.dy(), g.x(1)},
                        {{"shape", g.x().shape().dims()}, {"batch_dims", batch_dims}})};
}

std::vector<Expr> gather_nd_grad_rule(const Gradient& g) {
  const std::int64_t batch_dims = g.attributes().get_int("batch_dims", 0);
  return {call("GatherND", {g.dy(), g.x(1)}, {{"batch_dims", batch_dims}})};
}

std::vector<Expr> scatter_nd_rule(const Gradient& g) {
  const Expr indices = g.x(1);
  return scatter_gradients(
      g, {.scatter =
              [=](const Expr& data, const Expr& updates, std::string_view reduction) {
                return call("ScatterND", {data, indices, updates},
                            {{"reduction", std::string(reduction)}});
              },
          .gather =
              [=](const Expr& x) {
                return call("GatherND", {x, indices});
              }});
}

SampleInput tuples(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .values = std::move(values), .dtype = DType::i64};
}

std::vector<Sample> gather_nd_samples() {
  const SampleInput cube{{2, 3, 4}};
  const Attributes one_batch{{"batch_dims", 1}};
  return {
      {"elements", {{{2, 3}}, tuples({3, 2}, {0, 2, 1, 1, 0, 2})}},
      {"rows", {{{2, 3}}, tuples({2, 1}, {1, 0})}},
      {"planes", {cube, tuples({2, 1, 2}, {0, 1, 1, -1})}},
      {"one_tuple", {cube, tuples({2}, {1, 2})}},
      {"batch", {cube, tuples({2, 1}, {1, 2})}, one_batch},
      {"batch_elements", {cube, tuples({2, 2, 2}, {0, 1, 2, 3, 1, 1, 1, 1})}, one_batch},
      {"no_tuples", {cube, {.shape = {0, 2}, .dtype = DType::i64}}},
  };
}

using Ints = std::vector<std::int64_t>;

std::vector<Sample> gather_nd_grad_samples() {
  return {
      {"repeated", {{{3}}, tuples({3, 2}, {0, 2, 1, 1, 0, 2})}, {{"shape", Ints{2, 3}}}},
      {"rows", {{{2, 3}}, tuples({2, 1}, {1, 1})}, {{"shape", Ints{2, 3}}}},
      {"batch", {{{2, 4}}, tuples({2, 1}, {1, 2})}, {{"shape", Ints{2, 3, 4}}, {"batch_dims", 1}}},
      {"no_tuples", {{{0}}, tuples({0, 2}, {})}, {{"shape", Ints{2, 3}}}},
      {"one_tuple", {{{1, 3}}, tuples({1, 1}, {0})}, {{"shape", Ints{1, 3}}}},
  };
}

std::vector<Sample> scatter_nd_samples() {
  const SampleInput data{{4, 3}};
  const auto reduction = [](const char* name) { return Attributes{{"reduction", name}}; };
  const SampleInput apart{.shape = {4, 3}, .low = 0.5, .high = 2.0, .distinct = true};
  const SampleInput updates{.shape = {3, 3},
                            .values = {0.71, 1.83, 1.22, 0.66, 1.47, 0.93, 1.14, 1.96, 0.58}};
  const auto reduced = [&](const char* name) {
    return Sample{name, {apart, tuples({3, 1}, {1, 1, 0}), updates}, reduction(name)};
  };
  return {
      {"rows", {data, tuples({2, 1}, {3, -4}), {{2, 3}}}},
      {"elements", {data, tuples({2, 2}, {3, 0, 1, 2}), {{2}}}},
      {"add", {data, tuples({3, 1}, {1, 1, 0}), {{3, 3}}}, reduction("add")},
      {"no_tuples", {data, {.shape = {0, 1}, .dtype = DType::i64}, {{0, 3}}}},
      reduced("mul"),
      reduced("max"),
      reduced("min"),
  };
}

}  // namespace

/// GatherND, ScatterND and the internal GatherNDGrad; indices out of range as in Gather.
void register_gather_nd(OpRegistry& registry) {
  registry.add({.name = "GatherND",
                .since = {{11}, {12, "batch_dims"}, {13}},
                .inputs = {{"data"}, {"indices"}},
                .outputs = {{"output"}},
                .attributes = {{"batch_dims", AttributeType::integer}},
                .infer = infer_gather_nd,
                .only_moves = true,
                .backward = gather_nd_rule,
                .samples = gather_nd_samples});
  registry.add({.name = "GatherNDGrad",
                .domain = kInternalDomain,
                .inputs = {{"dy"}, {"indices"}},
                .outputs = {{"dx"}},
                .attributes = {{"shape", AttributeType::integers, true},
                               {"batch_dims", AttributeType::integer}},
                .infer = infer_gather_nd_grad,
                .lower = lower_gather_nd_grad,
                .backward = gather_nd_grad_rule,
                .samples = gather_nd_grad_samples});
  registry.add({.name = "ScatterND",
                .since = {{11}, {13}, {16, "reductions"}, {18, "reductions max and min"}},
                .inputs = {{"data"}, {"indices"}, {"updates"}},
                .outputs = {{"output"}},
                .attributes = {{"reduction", AttributeType::text}},
                .infer = infer_scatter_nd,
                .aliases = {{0, 0, AliasKind::in_place}},
                .backward = scatter_nd_rule,
                .samples = scatter_nd_samples});
}

}  // namespace graft
