#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

void infer_trilu(InferContext& context) {
  context.require_rank(0, 2, INT32_MAX);
  context.attributes().get_int("upper", 1);
  if (const DType k = context.dtype(1); k != DType::undefined && k != DType::i64) {
    context.fail(ErrorKind::type, "k is ", k, ", wanted i64");
  }
  if (const SymShape* const k = context.shape(1)) {
    const Dim size = product(*k, 0, k->rank());
    if (size.is_known() && size.value() != 1) {
      context.fail(ErrorKind::shape, "k has ", size, " elements, wanted one");
    }
  }
  context.copy_type(0);
}

std::vector<Expr> trilu_rule(const Gradient& g) {
  return {call("Trilu", {g.dy(), g.x(1)}, g.attributes())};
}

std::vector<Sample> trilu_samples() {
  const SampleInput x{{4, 5}};
  const Attributes lower{{"upper", 0}};
  return {
      {"upper", {x}},
      {"lower", {x}, lower},
      {"upper_above", {x, constant_number(2)}},
      {"upper_below", {x, constant_number(-2)}},
      {"lower_above", {x, constant_number(1)}, lower},
      {"lower_below", {x, constant_number(-3)}, lower},
      {"far_above", {x, constant_number(99)}},
      {"far_below", {x, constant_number(-99)}},
      {"batch", {{{2, 3, 3, 2}}}, lower},
      {"empty", {{{0, 3}}}},
      {"one_row", {{{1, 3}}}, lower},
      {"integers", {{.shape = {3, 3}, .low = -9, .high = 9, .dtype = DType::i64}}},
  };
}

void infer_along(InferContext& context, int axis_input) {
  context.copy_type(0);
  const SymShape* const shape = context.shape(0);
  const auto axis = context.constant_ints(axis_input);
  if (!axis) return;
  if (axis->size() != 1) {
    context.fail(ErrorKind::shape, "axis has ", axis->size(), " elements, wanted one");
  }
  if (shape != nullptr) normalize_axis(axis->front(), shape->rank(), context.node().label());
}

void infer_cumulative(InferContext& context) {
  infer_along(context, 1);
}

void infer_cum_prod_grad(InferContext& context) {
  context.require_same_dtype({0, 1});
  const SymShape* const dy = context.shape(0);
  const SymShape* const x = context.shape(1);
  if (dy != nullptr && x != nullptr && dy->known() && x->known() && !(*dy == *x)) {
    context.fail(ErrorKind::shape, "dy is ", *dy, ", x is ", *x, ", wanted one shape");
  }
  infer_along(context, 2);
}

/// Each element is in the sums behind it: the sum of dy from the other end.
std::vector<Expr> cum_sum_rule(const Gradient& g) {
  Attributes attributes = g.attributes();
  attributes.set({"reverse", g.attributes().get_int("reverse", 0) == 0 ? 1 : 0});
  return {call("CumSum", {g.dy(), g.x(1)}, attributes)};
}

std::vector<Sample> cum_sum_samples() {
  const SampleInput x{{3, 4, 2}};
  const SampleInput axis = constant_number(1);
  return {
      {"middle", {x, axis}},
      {"first", {x, constant_number(0)}},
      {"last", {x, constant_number(-1)}},
      {"exclusive", {x, axis}, {{"exclusive", 1}}},
      {"reverse", {x, axis}, {{"reverse", 1}}},
      {"exclusive_reverse", {x, axis}, {{"exclusive", 1}, {"reverse", 1}}},
      {"one", {{{1}}, constant_number(0)}, {{"exclusive", 1}}},
      {"empty", {{{2, 0}}, constant_number(1)}},
      {"integers", {{.shape = {5}, .low = -9, .high = 9, .dtype = DType::i32}, constant_number(0)}},
  };
}

std::vector<Expr> cum_prod_rule(const Gradient& g) {
  return {call_internal("CumProdGrad", {g.dy(), g.x(0), g.x(1)}, g.attributes())};
}

std::vector<Sample> cum_prod_samples() {
  std::vector<Sample> samples = cum_sum_samples();
  samples.push_back(
      {"zeros", {{.shape = {2, 4}, .values = {2, 0, 3, 4, 0, 2, 0, 5}}, constant_number(1)}});
  return samples;
}

std::vector<Sample> cum_prod_grad_samples() {
  std::vector<Sample> samples = cum_prod_samples();
  std::erase_if(samples, [](const Sample& s) { return s.name == "integers"; });
  for (Sample& sample : samples) {
    sample.inputs.insert(sample.inputs.begin(), SampleInput{sample.inputs.front().shape});
  }
  return samples;
}

const std::vector<AttributeDef> kCumulative{{"exclusive", AttributeType::integer},
                                            {"reverse", AttributeType::integer}};

}  // namespace

/// Trilu and CumSum: what attention masks and position counts are made of; CumProd.
void register_trilu(OpRegistry& registry) {
  registry.add({.name = "Trilu",
                .since = {{14}},
                .inputs = {{"input"}, {"k", Arity::optional}},
                .outputs = {{"output"}},
                .attributes = {{"upper", AttributeType::integer}},
                .infer = infer_trilu,
                .aliases = {{0, 0, AliasKind::in_place}},
                .backward = trilu_rule,
                .samples = trilu_samples});
  registry.add({.name = "CumSum",
                .since = {{11}, {14}},
                .inputs = {{"x"}, {"axis"}},
                .outputs = {{"y"}},
                .attributes = kCumulative,
                .infer = infer_cumulative,
                .backward = cum_sum_rule,
                .samples = cum_sum_samples});
  registry.add({.name = "CumProd",
                .since = {{26}},
                .inputs = {{"x"}, {"axis"}},
                .outputs = {{"y"}},
                .attributes = kCumulative,
                .infer = infer_cumulative,
                .backward = cum_prod_rule,
                .samples = cum_prod_samples});
  registry.add({.name = "CumProdGrad",
                .domain = kInternalDomain,
                .inputs = {{"dy"}, {"x"}, {"axis"}},
                .outputs = {{"dx"}},
                .attributes = kCumulative,
                .infer = infer_cum_prod_grad,
                .backward = NotDifferentiable{"second derivatives of CumProd are not offered"},
                .samples = cum_prod_grad_samples});
}

}  // namespace graft
