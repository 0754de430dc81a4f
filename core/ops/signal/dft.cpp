#include "core/ops/signal/dft.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/ops/builder.h"
#include "core/ops/kernels/window.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

/// The single number in an input; nullopt when it is not known before the run.
std::optional<std::int64_t> known_number(const InferContext& context, int index) {
  require_index_type(context, index);
  const auto values = context.constant_ints(index);
  if (!values) return std::nullopt;
  if (values->size() != 1) {
    context.fail(ErrorKind::shape, "input '", context.input(index).name(), "' has ", values->size(),
                 " elements, wanted one");
  }
  return values->front();
}

std::optional<int> dft_axis(const InferContext& context, int rank) {
  std::int64_t given = -2;
  if (context.has_input(2)) {
    const auto known = known_number(context, 2);
    if (!known) return std::nullopt;
    given = *known;
  }
  const int axis = normalize_axis(given, rank, context.node().label());
  if (axis == rank - 1) {
    context.fail(ErrorKind::shape, "axis ", given, " holds the parts of the complex numbers");
  }
  return axis;
}

/// The last axis holds real numbers (1) or real and imaginary parts (2).
void require_parts(const InferContext& context, const SymShape& x) {
  const Dim& parts = x[x.rank() - 1];
  if (parts.is_known() && parts.value() != 1 && parts.value() != 2) {
    context.fail(ErrorKind::shape, "input is ", x, ", wanted 1 or 2 in the last axis");
  }
}

void infer_dft(InferContext& context) {
  context.require_rank(0, 2, 64);
  const SymShape* const x = context.shape(0);
  if (x == nullptr) return context.set_output(0, context.dtype(0));
  require_parts(context, *x);
  SymShape y = *x;
  const std::optional<int> axis = dft_axis(context, x->rank());
  if (!axis) {
    y = unknown_dims(x->rank());
  } else {
    const auto call = dft_call(context);
    y[*axis] = call ? Dim(call->output) : Dim();
  }
  const bool is_real = context.attributes().get_int("inverse", 0) != 0 &&
                       context.attributes().get_int("onesided", 0) != 0;
  y[y.rank() - 1] = is_real ? 1 : 2;
  context.set_output(0, context.dtype(0), std::move(y));
}

/// Before 20 the axis was an attribute.
void upgrade_dft(Node& node, std::int64_t from, Builder& builder) {
  if (from >= 20) return;
  const std::int64_t axis = node.attributes.get_int("axis", 1);
  node.attributes.erase("axis");
  node.set_input(2, builder.constant(Tensor::scalar(axis)));
}

/// Cuts off or fills up with zeros at the end of an axis.
Expr fit(const Expr& x, int axis, std::int64_t size) {
  const std::int64_t more = size - x.shape()[axis];
  if (more == 0) return x;
  return call("Pad", {x, constant_ints(x.builder(), {0, more}), Expr(),
                      constant_ints(x.builder(), {axis})});
}

Expr transform(const Expr& x, const DftCall& of, bool inverse) {
  Builder& builder = x.builder();
  const auto number = [&](std::int64_t value) {
    return builder.expr(builder.constant(Tensor::scalar(value)));
  };
  return call("DFT", {x, number(of.length), number(of.axis)}, {{"inverse", inverse ? 1 : 0}});
}

/// How often the inverse one-sided transform takes each number: those which it mirrors twice.
Expr mirror_counts(const Expr& like, const DftCall& of) {
  std::vector<double> counts(static_cast<std::size_t>(of.length / 2 + 1), 2.0);
  counts.front() = 1.0;
  if (of.length % 2 == 0) counts.back() = 1.0;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(like.rank()), 1);
  at(dims, of.axis) = std::ssize(counts);
  const Tensor tensor = Tensor::from(Shape(dims), counts).cast(like.dtype());
  return like.builder().expr(like.builder().constant(tensor));
}

/// The transform is linear, y = F x; the gradient is the conjugate transpose of F applied to dy,
/// which is the inverse transform times the length.
std::vector<Expr> dft_rule(const Gradient& g) {
  const InferContext context(const_cast<Node&>(g.node()));  // reads only
  const auto of = dft_call(context);
  if (!of) fail(ErrorKind::unsupported, g.node().label(), ": its length or axis is not known");
  const auto length = static_cast<double>(of->length);
  Expr dx = transform(g.dy(), *of, !of->inverse);
  dx = of->inverse ? dx / length : dx * length;
  if (of->is_real()) {
    require_small_table(g.node(), of->length / 2 + 1);
    dx = fit(dx, of->axis, of->length / 2 + 1);
    dx = dx * mirror_counts(dx, *of);
  }
  dx = fit(dx, of->axis, of->input);
  const Shape x = g.x().shape();
  return {fit(dx, x.rank() - 1, x[x.rank() - 1])};
}

std::vector<Sample> dft_samples() {
  const Attributes onesided{{"onesided", 1}};
  const Attributes inverse{{"inverse", 1}};
  const Attributes real{{"inverse", 1}, {"onesided", 1}};
  std::vector<Sample> samples{
      {"real", {{{2, 8, 1}}}},
      {"complex", {{{2, 5, 2}}}},
      {"prime", {{{1, 13, 2}}}},
      {"axis", {{{3, 4, 2, 2}}, absent(), constant_number(0)}},
      {"filled_up", {{{2, 5, 2}}, constant_number(12)}},
      {"cut_off", {{{2, 9, 1}}, constant_number(6)}},
      {"onesided", {{{2, 8, 1}}}, onesided},
      {"onesided_odd", {{{2, 7, 1}}}, onesided},
      {"onesided_filled_up", {{{2, 5, 1}}, constant_number(10)}, onesided},
      {"onesided_complex", {{{2, 6, 2}}}, onesided},
      {"inverse", {{{2, 6, 2}}}, inverse},
      {"inverse_real_input", {{{2, 6, 1}}}, inverse},
      {"inverse_cut_off", {{{2, 6, 2}}, constant_number(4)}, inverse},
      {"real_result", {{{2, 5, 2}}}, real},
      {"real_result_odd", {{{2, 5, 2}}, constant_number(9)}, real},
      {"real_result_filled_up", {{{2, 3, 2}}, constant_number(10)}, real},
      {"real_result_cut_off", {{{2, 9, 2}}, constant_number(7)}, real},
      {"one_number", {{{3, 1, 2}}}},
      {"empty_batch", {{{0, 4, 1}}}},
      {"many", {{{40, 100, 2}}}},
  };
  for (Sample& sample : samples) sample.absolute = 2e-5;
  return samples;
}

}  // namespace

std::optional<DftCall> dft_call(const InferContext& context) {
  const SymShape* const x = context.shape(0);
  if (x == nullptr || x->rank() < 2) return std::nullopt;
  const std::optional<int> axis = dft_axis(context, x->rank());
  if (!axis) return std::nullopt;
  DftCall call{.axis = *axis};
  call.inverse = context.attributes().get_int("inverse", 0) != 0;
  call.onesided = context.attributes().get_int("onesided", 0) != 0;
  const Dim& dim = (*x)[*axis];
  if (dim.is_known()) call.input = dim.value();
  if (context.has_input(1)) {
    const auto length = known_number(context, 1);
    if (!length) return std::nullopt;
    call.length = *length;
  } else {
    if (!dim.is_known()) return std::nullopt;
    call.length = call.is_real() ? checked_multiply(2, dim.value() - 1) : dim.value();
  }
  if (call.length < 1 || call.length > kMostPerAxis) {
    context.fail(ErrorKind::shape, "the length of the transform is ", call.length, ", wanted 1 to ",
                 kMostPerAxis);
  }
  call.output = call.onesided && !call.inverse ? call.length / 2 + 1 : call.length;
  return call;
}

/// DFT: any length, also one-sided, in both directions.
void register_dft(OpRegistry& registry) {
  registry.add(
      {.name = "DFT",
       .since = {{17}, {20, "the axis is an input"}},
       .inputs = {{"input"}, {"dft_length", Arity::optional}, {"axis", Arity::optional}},
       .outputs = {{"output"}},
       .attributes = {{"inverse", AttributeType::integer}, {"onesided", AttributeType::integer}},
       .infer = infer_dft,
       .upgrade = upgrade_dft,
       .backward = dft_rule,
       .samples = dft_samples});
}

}  // namespace graft
