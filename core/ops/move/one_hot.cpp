#include <cmath>

#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

/// Unknown when depth is not known before the run.
Dim depth_of(const InferContext& context) {
  const Tensor depth = context.constant(1);
  if (!depth.defined()) return {};
  if (depth.size() != 1) context.fail(ErrorKind::shape, "depth is ", depth, ", wanted one element");
  const double value = to_double(depth).front();
  constexpr double kMost = 9e15;  // doubles count exactly up to there
  if (!(value >= 0 && value <= kMost)) context.fail(ErrorKind::shape, "depth is ", value);
  return static_cast<std::int64_t>(value);
}

void infer_one_hot(InferContext& context) {
  if (const SymShape* const values = context.shape(2)) {
    context.require_rank(2, 1, 1);
    if ((*values)[0].is_known() && (*values)[0].value() != 2) {
      context.fail(ErrorKind::shape, "values are ", *values, ", wanted [2]: off and on");
    }
  }
  const SymShape* const indices = context.shape(0);
  if (indices == nullptr) return context.set_output(0, context.dtype(2));
  const int axis = normalize_axis(context.attributes().get_int("axis", -1), indices->rank() + 1,
                                  context.node().label());
  std::vector<Dim> dims = indices->dims();
  dims.insert(dims.begin() + axis, depth_of(context));
  context.set_output(0, context.dtype(2), SymShape(std::move(dims)));
}

/// y = off + (on - off) * mask: what is on sums up to the gradient of `on`, the rest to that of
/// off.
std::vector<Expr> one_hot_rule(const Gradient& g) {
  const Tensor off_on = Tensor::from<float>({2}, {0, 1}).cast(g.x(2).dtype());
  const Expr values = g.builder().expr(g.builder().constant(off_on));
  const Expr mask =
      call("OneHot", {g.x(0), g.x(1), values}, {{"axis", g.attributes().get_int("axis", -1)}});
  const auto sum = [](const Expr& x) { return reshape(reduce_sum(x, {}, false), {1}); };
  const Expr on = sum(g.dy() * mask);
  return {{}, {}, call("Concat", {sum(g.dy()) - on, on}, {{"axis", 0}})};
}

std::vector<Sample> one_hot_samples() {
  const auto indices = [](const Shape& shape, std::vector<double> values, DType dtype) {
    return SampleInput{.shape = shape, .values = std::move(values), .dtype = dtype};
  };
  const auto depth = [](double value, DType dtype = DType::i64) {
    return SampleInput{.values = {value}, .dtype = dtype, .is_constant = true};
  };
  const SampleInput off_on{.shape = {2}, .values = {-0.5, 3}};
  const SampleInput row = indices({3}, {1, -1, 7}, DType::i64);
  const SampleInput known_floats{.shape = {2}, .values = {1, 0}, .is_constant = true};
  return {
      {"last", {row, depth(4), off_on}},
      {"first", {row, depth(4), off_on}, {{"axis", 0}}},
      {"middle",
       {indices({2, 2}, {0, 2, 1, 1}, DType::i32), depth(3, DType::i32), off_on},
       {{"axis", 1}}},
      {"scalar", {indices({}, {2}, DType::i64), depth(3), off_on}},
      {"float_indices", {known_floats, depth(2), off_on}},
      {"integer_values", {row, depth(4), {.shape = {2}, .values = {0, 1}, .dtype = DType::i64}}},
      {"no_depth", {row, depth(0), off_on}},
      {"no_indices", {indices({0, 2}, {}, DType::i64), depth(3), off_on}},
      {"one_index", {indices({1, 1}, {2}, DType::i64), depth(3), off_on}},
  };
}

void infer_top_k(InferContext& context) {
  const SymShape* const shape = context.shape(0);
  std::optional<SymShape> result;
  std::optional<std::vector<std::int64_t>> k = known_ints(context, 1, "");
  if (!context.has_input(1) && context.attributes().has("k")) {
    k = std::vector<std::int64_t>{context.attributes().get_int("k", 0)};
  } else {
    context.input(1);
  }
  if (k && (k->size() != 1 || k->front() < 0)) {
    context.fail(ErrorKind::shape, "K must be one number, not negative");
  }
  if (shape != nullptr) {
    result = *shape;
    Dim& dim = (*result)[normalize_axis(context.attributes().get_int("axis", -1), shape->rank(),
                                        context.node().label())];
    if (k && dim.is_known() && k->front() > dim.value()) {
      context.fail(ErrorKind::shape, "K is ", k->front(), ", but the axis has ", dim, " elements");
    }
    dim = k ? Dim(k->front()) : Dim();
  }
  context.set_output(0, context.dtype(0), result);
  context.set_output(1, DType::i64, result);
}

void upgrade_top_k(Node& node, std::int64_t from, Builder& builder) {
  if (from >= 10 || !node.attributes.has("k")) return;
  const std::int64_t k = node.attributes.get_int("k", 0);
  node.attributes.erase("k");
  node.set_input(1, constant_ints(builder, {k}).value());
}

/// Each gradient goes back to where its value came from.
std::vector<Expr> top_k_rule(const Gradient& g) {
  if (g.node().output(1) == nullptr) {
    fail(ErrorKind::unsupported, g.node().label(), ": no gradient without the output Indices");
  }
  const std::int64_t axis = g.attributes().get_int("axis", -1);
  return {call("ScatterElements", {zeros_like(g.x()), g.y(1), g.dy()}, {{"axis", axis}})};
}

std::vector<Sample> top_k_samples() {
  const SampleInput x{.shape = {3, 5, 2}, .distinct = true};
  const auto axis = [](int value) { return Attributes{{"axis", value}}; };
  return {
      {"last", {x, ints({1})}, {}, 2},
      {"middle", {x, ints({3})}, axis(1), 2},
      {"first", {x, ints({2})}, axis(0), 2},
      {"all", {x, ints({5})}, axis(-2), 2},
      {"smallest", {x, ints({3})}, {{"axis", 1}, {"largest", 0}}, 2},
      {"none", {x, ints({0})}, axis(1), 2},
      {"unsorted", {x, ints({3})}, {{"axis", 1}, {"sorted", 0}}, 2},
      {"of_empty", {{{0, 5}}, ints({2})}, {}, 2},
      {"of_one", {{{3, 1}}, ints({1})}, {}, 2},
      {"integers", {{.shape = {9}, .low = -3, .high = 3, .dtype = DType::i64}, ints({4})}, {}, 2},
      {"over_threads", {{.shape = {300, 200}, .distinct = true}, ints({7})}, {}, 2},
  };
}

}  // namespace

/// OneHot and TopK: selections along one axis.
void register_one_hot(OpRegistry& registry) {
  registry.add({.name = "OneHot",
                .since = {{9}, {11, "negative indices"}, {28}},
                .inputs = {{"indices"}, {"depth"}, {"values"}},
                .outputs = {{"output"}},
                .attributes = {{"axis", AttributeType::integer}},
                .infer = infer_one_hot,
                .backward = one_hot_rule,
                .samples = one_hot_samples});
  registry.add({.name = "TopK",
                .since = {{1}, {10, "K as input"}, {11, "largest and sorted"}, {24}},
                .inputs = {{"X"}, {"K", Arity::optional}},  // an attribute before opset 10
                .outputs = {{"Values"}, {"Indices"}},
                .attributes = {{"axis", AttributeType::integer},
                               {"largest", AttributeType::integer},
                               {"sorted", AttributeType::integer}},
                .infer = infer_top_k,
                .upgrade = upgrade_top_k,
                .backward = top_k_rule,
                .samples = top_k_samples});
}

}  // namespace graft
