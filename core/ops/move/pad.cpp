#include "core/ops/move/pad.h"

#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {

PadMode pad_mode(const Node& node) {
  const std::string mode = node.attributes.get_string("mode", "constant");
  if (mode == "constant") return PadMode::constant;
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "edge") return PadMode::edge;
  if (mode == "wrap") return PadMode::wrap;
  fail(ErrorKind::model, node.label(), ": mode '", mode,
       "' is none of constant, reflect, edge, wrap");
}

std::optional<PadAmounts> pad_amounts(const InferContext& context, int rank) {
  const auto pads = known_ints(context, 1, "pads");
  std::optional<std::vector<std::int64_t>> axes = known_ints(context, 3, "");
  if (!pads || (!axes && context.has_input(3))) return std::nullopt;
  if (!axes) {
    axes.emplace();
    for (int axis = 0; axis < rank; ++axis) axes->push_back(axis);
  }
  const std::size_t count = axes->size();
  if (pads->size() != 2 * count) {
    context.fail(ErrorKind::shape, "pads has ", pads->size(), " elements, wanted ", 2 * count,
                 ", two for each of ", count, " axes");
  }
  PadAmounts amounts{std::vector<std::int64_t>(static_cast<std::size_t>(rank), 0),
                     std::vector<std::int64_t>(static_cast<std::size_t>(rank), 0)};
  const std::vector<int> places = unique_axes(*axes, rank, context.node().label());
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = static_cast<std::size_t>(places[i]);
    amounts.before[axis] = (*pads)[i];
    amounts.after[axis] = (*pads)[i + count];
  }
  return amounts;
}

namespace {

/// The padded size of one axis.
std::int64_t padded(const InferContext& context, PadMode mode, std::int64_t dim,
                    std::int64_t before, std::int64_t after) {
  // Far beyond any tensor, and far from overflow.
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  const bool in_range =
      dim <= kMost && std::abs(before / 2) <= kMost && std::abs(after / 2) <= kMost;
  const std::int64_t result = in_range ? dim + before + after : -1;
  // Cropping more than there is on one side would take from the padding of the other.
  if (result < 0 || dim + std::min<std::int64_t>(before, 0) < 0 ||
      dim + std::min<std::int64_t>(after, 0) < 0) {
    context.fail(ErrorKind::shape, "pads ", before, " and ", after, " do not fit a dim of ", dim);
  }
  if (dim == 0 && result > 0 && mode != PadMode::constant) {
    context.fail(ErrorKind::shape, "an axis without elements can only be padded with a constant");
  }
  return result;
}

void infer_pad(InferContext& context) {
  const PadMode mode = pad_mode(context.node());
  const DType dtype = context.dtype(0);
  if (!has_ints(context, 1, "pads")) context.fail(ErrorKind::model, "pads are missing");
  context.require_same_dtype({0, 2});
  if (context.shape(2) != nullptr) {
    const Dim size = product(*context.shape(2), 0, context.shape(2)->rank());
    if (size.is_known() && size.value() != 1) {
      context.fail(ErrorKind::shape, "constant_value has ", size, " elements, wanted one");
    }
  }
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, dtype);
  const auto amounts = pad_amounts(context, shape->rank());
  if (!amounts) return context.set_output(0, dtype, unknown_dims(shape->rank()));
  SymShape result = *shape;
  for (int axis = 0; axis < result.rank(); ++axis) {
    const std::int64_t before = amounts->before[static_cast<std::size_t>(axis)];
    const std::int64_t after = amounts->after[static_cast<std::size_t>(axis)];
    Dim& dim = result[axis];
    if (dim.is_known()) {
      dim = padded(context, mode, dim.value(), before, after);
    } else if (before != 0 || after != 0) {
      dim = Dim();
    }
  }
  context.set_output(0, dtype, std::move(result));
}

/// Attributes shape (of the result), before, after and mode.
void infer_pad_grad(InferContext& context) {
  const PadMode mode = pad_mode(context.node());
  const Shape result(context.attributes().get_ints("shape"));
  const std::vector<std::int64_t> before = context.attributes().get_ints("before");
  const std::vector<std::int64_t> after = context.attributes().get_ints("after");
  const auto rank = static_cast<std::size_t>(result.rank());
  if (before.size() != rank || after.size() != rank) {
    context.fail(ErrorKind::shape, "shape, before and after differ in length");
  }
  context.require_rank(0, result.rank(), result.rank());
  const SymShape* const dy = context.shape(0);
  for (int axis = 0; axis < result.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t wanted = padded(context, mode, result[axis], before[at], after[at]);
    if (dy != nullptr && (*dy)[axis].is_known() && (*dy)[axis].value() != wanted) {
      context.fail(ErrorKind::shape, "dy is ", *dy, ", wanted ", wanted, " in axis ", axis);
    }
  }
  context.set_output(0, context.dtype(0), result);
}

void upgrade_pad(Node& node, std::int64_t from, Builder& builder) {
  if (from >= 11) return;
  ints_attribute_to_input(node, builder, "pads", 1);
  if (!node.attributes.has("value")) return;
  const float value = node.attributes.get_float("value", 0.0F);
  node.attributes.erase("value");
  const DType dtype = node.input(0) == nullptr ? DType::f32 : node.input(0)->dtype();
  node.set_input(2, builder.constant(Tensor::full(dtype == DType::undefined ? DType::f32 : dtype,
                                                  Shape{}, value)));
}

std::vector<std::int64_t> concatenated(const std::vector<std::int64_t>& before,
                                       const std::vector<std::int64_t>& after, int sign) {
  std::vector<std::int64_t> pads;
  for (const auto* part : {&before, &after}) {
    for (const std::int64_t amount : *part) pads.push_back(sign * amount);
  }
  return pads;
}

/// With a constant: padding by the negative amounts cuts the padding off and puts zeros where data
/// were cut off. Else the padding adds to the elements that it repeats.
std::vector<Expr> pad_rule(const Gradient& g) {
  const Shape shape = g.x().shape();
  const InferContext context(const_cast<Node&>(g.node()));  // reads only
  const auto amounts = pad_amounts(context, shape.rank());
  if (!amounts) fail(ErrorKind::unsupported, g.node().label(), ": its pads are not known");
  if (pad_mode(g.node()) != PadMode::constant) {
    return {call_internal("PadGrad", {g.dy()},
                          {{"shape", shape.dims()},
                           {"before", amounts->before},
                           {"after", amounts->after},
                           {"mode", g.attributes().get_string("mode", "")}})};
  }
  const Expr pads = constant_ints(g.builder(), concatenated(amounts->before, amounts->after, -1));
  const Expr dx = call("Pad", {g.dy(), pads});
  if (!g.x(2) || !g.needs(2)) return {dx};
  const Expr of_padding = reduce_sum(g.dy(), {}, false) - reduce_sum(dx, {}, false);
  return {dx, {}, reshape(of_padding, g.x(2).shape())};
}

std::vector<Expr> pad_grad_rule(const Gradient& g) {
  const std::vector<std::int64_t> pads =
      concatenated(g.attributes().get_ints("before"), g.attributes().get_ints("after"), 1);
  return {call("Pad", {g.dy(), constant_ints(g.builder(), pads)},
               {{"mode", g.attributes().get_string("mode", "constant")}})};
}

std::vector<Sample> pad_samples() {
  const SampleInput x{{3, 4}};
  const SampleInput scalar{{}};
  const auto mode = [](const char* name) { return Attributes{{"mode", name}}; };
  std::vector<Sample> samples{
      {"zeros", {x, ints({1, 0, 2, 3})}},
      {"value", {x, ints({0, 2, 1, 0}), scalar}},
      {"axes", {x, ints({2, 1}), absent(), ints({-1})}},
      {"value_and_axes", {x, ints({1, 1}), scalar, ints({0})}},
      {"cropped", {x, ints({-1, 1, 0, -2}), scalar}},
      {"cropped_away", {x, ints({-3, 0, 0, 0})}},
      {"nothing", {x, ints({0, 0, 0, 0})}},
      {"of_empty", {{{0, 2}}, ints({1, 0, 1, 0}), scalar}},
      {"image", {{{2, 3, 5, 7}}, ints({0, 0, 1, 2, 0, 0, 1, 2})}},
      {"integers", {{.shape = {3}, .low = -9, .high = 9, .dtype = DType::i64}, ints({1, 1})}},
  };
  for (const char* name : {"reflect", "edge", "wrap"}) {
    samples.push_back({name, {x, ints({1, 2, 2, 1})}, mode(name)});
    samples.push_back({std::string(name) + "_far", {x, ints({5, 0, 0, 9})}, mode(name)});
    samples.push_back({std::string(name) + "_cropped", {x, ints({-1, 2, 0, -1})}, mode(name)});
    samples.push_back({std::string(name) + "_one", {{{2, 1}}, ints({0, 2, 1, 1})}, mode(name)});
    samples.push_back({std::string(name) + "_image",
                       {{{2, 2, 4, 5}}, ints({0, 0, 1, 2, 0, 0, 2, 1})},
                       mode(name)});
  }
  return samples;
}

using Ints = std::vector<std::int64_t>;

std::vector<Sample> pad_grad_samples() {
  const auto attributes = [](const char* mode, const Ints& shape, const Ints& before,
                             const Ints& after) {
    return Attributes{{"mode", mode}, {"shape", shape}, {"before", before}, {"after", after}};
  };
  return {
      {"reflect", {{{3, 7}}}, attributes("reflect", {3, 4}, {0, 1}, {0, 2})},
      {"edge", {{{5, 5}}}, attributes("edge", {3, 4}, {1, 2}, {1, -1})},
      {"wrap", {{{2, 9}}}, attributes("wrap", {2, 4}, {0, 5}, {0, 0})},
      {"of_empty", {{{0, 7}}}, attributes("reflect", {0, 4}, {0, 1}, {0, 2})},
      {"one_row", {{{1, 3}}}, attributes("edge", {1, 1}, {0, 1}, {0, 1})},
  };
}

}  // namespace

/// Pad in all modes; PadGrad adds a gradient up over the elements that the padding repeats.
void register_pad(OpRegistry& registry) {
  registry.add({.name = "Pad",
                .since = {{2},
                          {11, "pads and value as inputs"},
                          {13},
                          {18, "axes"},
                          {19, "mode wrap"},
                          {21},
                          {23},
                          {24},
                          {25}},
                .inputs = {{"data"},
                           {"pads", Arity::optional},  // an attribute before opset 11
                           {"constant_value", Arity::optional},
                           {"axes", Arity::optional}},
                .outputs = {{"output"}},
                .attributes = {{"mode", AttributeType::text}},
                .infer = infer_pad,
                .upgrade = upgrade_pad,
                .backward = pad_rule,
                .samples = pad_samples});
  registry.add({.name = "PadGrad",
                .domain = kInternalDomain,
                .inputs = {{"dy"}},
                .outputs = {{"dx"}},
                .attributes = {{"shape", AttributeType::integers, true},
                               {"before", AttributeType::integers, true},
                               {"after", AttributeType::integers, true},
                               {"mode", AttributeType::text, true}},
                .infer = infer_pad_grad,
                .backward = pad_grad_rule,
                .samples = pad_grad_samples});
}

}  // namespace graft
