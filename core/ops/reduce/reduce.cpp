#include "core/ops/reduce/reduce.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"

namespace graft {

std::optional<std::vector<bool>> reduced_axes(const Node& node, int rank) {
  std::vector<std::int64_t> axes;
  if (const Value* const given = node.input(1)) {
    if (!given->is_initializer() || given->is_variable) return std::nullopt;
    axes = to_int64(given->initializer());
  }
  const bool none = axes.empty() && node.attributes.get_int("noop_with_empty_axes", 0) != 0;
  std::vector<bool> reduced(static_cast<std::size_t>(rank), axes.empty() && !none);
  for (const std::int64_t axis : axes) {
    const bool is_there = -rank <= axis && axis < rank;  // most are, and a label is a string
    const std::string who = is_there ? std::string() : node.label();
    const auto at = static_cast<std::size_t>(normalize_axis(axis, rank, who));
    if (reduced[at]) fail(ErrorKind::shape, node.label(), ": axis ", axis, " is named twice");
    reduced[at] = true;
  }
  return reduced;
}

Shape keep_dims_shape(const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<std::int64_t> dims = shape.dims();
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (reduced[axis]) dims[axis] = 1;
  }
  return Shape(std::move(dims));
}

namespace {

void infer_reduce(InferContext& context) {
  const DType dtype = context.dtype(0);
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, dtype);
  const bool keep = context.attributes().get_int("keepdims", 1) != 0;
  const auto reduced = reduced_axes(context.node(), shape->rank());
  if (!reduced) {
    if (!keep) return context.set_output(0, dtype);
    const auto rank = static_cast<std::size_t>(shape->rank());
    return context.set_output(0, dtype, SymShape(std::vector<Dim>(rank)));
  }
  std::vector<Dim> dims;
  for (int axis = 0; axis < shape->rank(); ++axis) {
    if (!(*reduced)[static_cast<std::size_t>(axis)]) {
      dims.push_back((*shape)[axis]);
    } else if (keep) {
      dims.emplace_back(1);
    }
  }
  context.set_output(0, dtype, SymShape(std::move(dims)));
}

/// The attribute `axes` of older forms becomes input 1.
void upgrade_reduce_axes(Node& node, std::int64_t from, Builder& builder, int input_since) {
  if (from >= input_since || !node.attributes.has("axes")) return;
  node.set_input(1, constant_ints(builder, node.attributes.get_ints("axes")).value());
  node.attributes.erase("axes");
}

void upgrade_sum(Node& node, std::int64_t from, Builder& builder) {
  upgrade_reduce_axes(node, from, builder, 13);
}
void upgrade_other(Node& node, std::int64_t from, Builder& builder) {
  upgrade_reduce_axes(node, from, builder, 18);
}

/// The input, output and output gradient of a reduction, the last two with reduced axes of size 1,
/// so that they broadcast against the input.
struct Kept {
  explicit Kept(const Gradient& g) : x(g.x()) {
    const auto reduced = reduced_axes(g.node(), x.rank());
    if (!reduced) {
      fail(ErrorKind::unsupported, g.node().label(),
           ": its axes must be known before the run to differentiate it");
    }
    const Shape kept = keep_dims_shape(x.shape(), *reduced);
    y = reshape(g.y(), kept);
    dy = reshape(g.dy(), kept);
    count = kept.size() == 0 ? 1 : x.shape().size() / kept.size();
    for (int axis = 0; axis < x.rank(); ++axis) {
      if ((*reduced)[static_cast<std::size_t>(axis)]) axes.push_back(axis);
    }
  }

  /// Sums over the reduced axes, keeping them.
  Expr sum(const Expr& value) const { return axes.empty() ? value : reduce_sum(value, axes, true); }

  Expr x;
  Expr y;
  Expr dy;
  std::int64_t count;
  std::vector<std::int64_t> axes;
};

std::vector<Expr> reduce_sum_rule(const Gradient& g) {
  const Kept k(g);
  return {expand(k.dy, k.x.shape())};
}

std::vector<Expr> reduce_mean_rule(const Gradient& g) {
  const Kept k(g);
  return {expand(k.dy / static_cast<double>(k.count), k.x.shape())};
}

/// Elements equal to the extreme share the gradient evenly, as in torch.amax.
std::vector<Expr> extreme_rule(const Gradient& g) {
  const Kept k(g);
  const Expr chosen = cast(equal(k.x, k.y), k.x.dtype());
  return {chosen * (k.dy / k.sum(chosen))};
}

/// y/x where no element is zero; a single zero gets the product of the others, and where there are
/// more every product of the others is zero.
std::vector<Expr> product_rule(const Gradient& g) {
  const Kept k(g);
  const Expr zero = constant_like(k.x, 0.0);
  const Expr one = constant_like(k.x, 1.0);
  const Expr is_zero = equal(k.x, zero);
  const Expr zeros = k.sum(cast(is_zero, k.x.dtype()));
  const Expr filled = where(is_zero, one, k.x);
  const Expr others =
      k.axes.empty()
          ? filled
          : call("ReduceProd", {filled, constant_ints(g.builder(), k.axes)}, {{"keepdims", 1}});
  const Expr at_zero = where(equal(zeros, one), others, zero);
  const Expr elsewhere = where(greater(zeros, zero), zero, others / filled);
  return {k.dy * where(is_zero, at_zero, elsewhere)};
}

std::vector<Expr> l1_rule(const Gradient& g) {
  const Kept k(g);
  return {k.dy * call("Sign", {k.x})};
}

/// x/y, and 0 where the norm is 0, as in torch.linalg.vector_norm.
std::vector<Expr> l2_rule(const Gradient& g) {
  const Kept k(g);
  const Expr zero = constant_like(k.y, 0.0);
  return {k.x * where(equal(k.y, zero), zero, k.dy / k.y)};
}

std::vector<Expr> sum_square_rule(const Gradient& g) {
  const Kept k(g);
  return {k.x * (k.dy * 2.0)};
}

/// d log(s)/dx = 1/s, and s = exp(y).
std::vector<Expr> log_sum_rule(const Gradient& g) {
  const Kept k(g);
  return {expand(k.dy * exp(-k.y), k.x.shape())};
}

std::vector<Expr> log_sum_exp_rule(const Gradient& g) {
  const Kept k(g);
  return {k.dy * exp(k.x - k.y)};
}

std::vector<Sample> reduce_samples(double low, double high, bool distinct) {
  const auto input = [&](Shape shape) {
    return SampleInput{.shape = std::move(shape), .low = low, .high = high, .distinct = distinct};
  };
  return {
      {"all", {input({2, 3, 5})}},
      {"leading", {input({5, 3}), ints({0})}},
      {"trailing", {input({3, 5}), ints({-1})}},
      {"middle", {input({2, 5, 3}), ints({1})}},
      {"outer_two", {input({2, 3, 4}), ints({2, 0})}},
      {"interleaved", {input({2, 3, 2, 3, 2}), ints({1, 3})}},
      {"no_keepdims", {input({2, 3, 4}), ints({1})}, {{"keepdims", 0}}},
      {"all_no_keepdims", {input({2, 3}), absent()}, {{"keepdims", 0}}},
      {"empty_axes_reduce_all", {input({2, 3}), ints({})}},
      {"noop", {input({2, 3}), ints({})}, {{"noop_with_empty_axes", 1}}},
      {"noop_left_out", {input({2, 3})}, {{"noop_with_empty_axes", 1}}},
      {"scalar", {input({})}},
      {"one_size_dims", {input({1, 4, 1}), ints({0, 2})}},
      {"empty_result", {input({0, 3}), ints({1})}},
      {"wide_row", {input({3, 517}), ints({1})}},
      {"narrow_columns", {input({301, 7}), ints({0})}},
      {"wide_columns", {input({9, 700}), ints({0})}},
      {"channel", {input({3, 5, 4, 3}), ints({0, 2, 3})}},
  };
}

/// Enough elements that the work is split over threads, and along the reduced axis. Of one sign:
/// an error relative to a sum that cancels says nothing.
std::vector<Sample> with_large(std::vector<Sample> samples) {
  const auto input = [](Shape shape) {
    return SampleInput{.shape = std::move(shape), .low = 0.5, .high = 2.0};
  };
  samples.push_back({"large_all", {input({200003})}});
  samples.push_back({"large_leading", {input({20001, 10}), ints({0})}});
  samples.push_back({"large_trailing", {input({1001, 130}), ints({1})}});
  samples.push_back({"large_channel", {input({16, 3, 37, 41}), ints({0, 2, 3})}});
  return samples;
}

/// A sum of nothing.
std::vector<Sample> with_empty(std::vector<Sample> samples) {
  samples.push_back({"empty_reduction", {{.shape = {2, 0, 3}}, ints({1})}});
  samples.push_back({"empty_all", {{.shape = {0}}}});
  return samples;
}

std::vector<Sample> sum_samples() {
  return with_empty(with_large(reduce_samples(-2.0, 2.0, false)));
}
std::vector<Sample> signed_reduce_samples() {
  return with_large(reduce_samples(-2.0, 2.0, false));
}
std::vector<Sample> positive_reduce_samples() {
  return with_large(reduce_samples(0.5, 2.0, false));
}
/// Distinct grids keep the extreme alone; a tie has no derivative to compare with.
std::vector<Sample> extreme_samples() {
  return reduce_samples(-2.0, 2.0, true);
}
std::vector<Sample> product_samples() {
  return with_empty(reduce_samples(0.9, 1.1, false));
}
/// Away from the kink at 0.
std::vector<Sample> norm_samples() {
  return with_empty(with_large(reduce_samples(0.1, 2.0, false)));
}

const std::vector<Since> kSince18{
    {1}, {11, "negative axes"}, {13, "bfloat16"}, {18, "axes as input, no-op for empty axes"}};
const std::vector<Since> kSinceSum{
    {1}, {11, "negative axes"}, {13, "axes as input, no-op for empty axes"}};
const std::vector<Since> kSinceExtreme{{1},
                                       {11, "negative axes"},
                                       {12, "int8, uint8"},
                                       {13, "bfloat16"},
                                       {18, "axes as input, no-op for empty axes"},
                                       {20, "bool"}};
const std::vector<Since> kSinceLog{{1},
                                   {11, "negative axes"},
                                   {13, "bfloat16"},
                                   {18, "axes as input, no-op for empty axes"},
                                   {28, "float types only"}};

OpDef reduction(std::string_view name, const std::vector<Since>& since, Rule rule,
                Samples samples) {
  return {.name = name,
          .since = since,
          .inputs = {{"data"}, {"axes", Arity::optional}},
          .outputs = {{"reduced"}},
          .attributes = {{"keepdims", AttributeType::integer},
                         {"noop_with_empty_axes", AttributeType::integer}},
          .infer = infer_reduce,
          .upgrade = name == "ReduceSum" ? upgrade_sum : upgrade_other,
          .backward = rule,
          .samples = samples};
}

}  // namespace

/// ReduceSum and its kin. Over nothing: sums and norms give 0, a product 1, a maximum the lowest
/// and a minimum the highest value of the type, a mean NaN, logarithms minus infinity.
void register_reduce(OpRegistry& registry) {
  registry.add(reduction("ReduceSum", kSinceSum, reduce_sum_rule, sum_samples));
  registry.add(reduction("ReduceMean", kSince18, reduce_mean_rule, signed_reduce_samples));
  registry.add(reduction("ReduceMax", kSinceExtreme, extreme_rule, extreme_samples));
  registry.add(reduction("ReduceMin", kSinceExtreme, extreme_rule, extreme_samples));
  registry.add(reduction("ReduceProd", kSince18, product_rule, product_samples));
  registry.add(reduction("ReduceL1", kSince18, l1_rule, norm_samples));
  registry.add(reduction("ReduceL2", kSince18, l2_rule, norm_samples));
  registry.add(reduction("ReduceSumSquare", kSince18, sum_square_rule, sum_samples));
  registry.add(reduction("ReduceLogSum", kSinceLog, log_sum_rule, positive_reduce_samples));
  registry.add(reduction("ReduceLogSumExp", kSinceLog, log_sum_exp_rule, signed_reduce_samples));
}

}  // namespace graft
