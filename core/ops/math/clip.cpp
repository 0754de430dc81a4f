#include "core/ops/builder.h"
#include "core/ops/math/activation.h"
#include "core/ops/math/activation_lowering.h"

namespace graft {
namespace {

void require_number(const InferContext& context, int index) {
  const SymShape* const shape = context.shape(index);
  if (shape == nullptr || !shape->known() || shape->known()->size() == 1) return;
  context.fail(ErrorKind::shape, "bound '", context.input(index).name(), "' has shape ", *shape,
               ", wanted one number");
}

/// x, then any inputs up to the bounds at `first_bound` and after it.
void infer_clip_from(InferContext& context, int first_bound) {
  for (int i = first_bound; i < first_bound + 2; ++i) {
    context.require_same_dtype({0, i});
    require_number(context, i);
  }
  context.copy_type(0);
}

/// A bound of the element type of `x`, which may be known only later.
Value* bound_like(Value* x, float bound, std::string_view name, Builder& builder) {
  if (x->dtype() != DType::undefined) {
    return builder.constant(Tensor::full(x->dtype(), {}, bound), name);
  }
  const Expr number = builder.expr(builder.constant(Tensor::scalar(bound), name));
  return call("CastLike", {number, builder.expr(x)}).value();
}

/// Attributes `min` and `max` became inputs in opset 11.
void upgrade_clip(Node& node, std::int64_t from, Builder& builder) {
  Value* const x = node.input(0);
  if (from >= 11 || x == nullptr) return;
  int index = 1;
  for (const std::string_view name : {"min", "max"}) {
    if (node.attributes.has(name)) {
      node.set_input(index, bound_like(x, node.attributes.get_float(name, 0.0F), name, builder));
      node.attributes.erase(name);
    }
    ++index;
  }
}

/// As torch.clamp: the gradient flows where min <= x <= max, ends included; below, it goes to min,
/// above (and everywhere when min > max), to max.
std::vector<Expr> clip_rule(const Gradient& g) {
  const auto input = [&](int i) { return i < g.input_count() ? g.x(i) : Expr(); };
  const Expr x = g.x();
  const Expr low = input(1);
  const Expr high = input(2);
  const Expr zero = constant_like(x, 0.0);
  std::vector<Expr> gradients{call_internal("ClipGrad", {x, g.dy(), low, high})};
  gradients.resize(3);
  if (low && g.needs(1)) {
    Expr is_below = less(x, low);
    if (high) is_below = call("And", {is_below, less(low, high)});
    gradients[1] = where(is_below, g.dy(), zero);
  }
  if (high && g.needs(2)) {
    Expr is_above = greater(x, high);
    if (low) is_above = call("Or", {is_above, less(high, low)});
    gradients[2] = where(is_above, g.dy(), zero);
  }
  return gradients;
}

std::vector<Sample> clip_samples() {
  const auto number = [](double value) { return SampleInput{.shape = {}, .values = {value}}; };
  std::vector<Sample> samples;
  for (const Sample& unary : unary_samples(-3.0, 3.0, true)) {
    Sample sample = unary;
    sample.inputs.push_back(number(-1.25));
    sample.inputs.push_back(number(1.5));
    samples.push_back(std::move(sample));
  }
  const SampleInput x{.shape = {3, 5}, .low = -3.0, .high = 3.0};
  samples.push_back({"no_bounds", {x}});
  samples.push_back({"min_only", {x, number(0.5)}});
  samples.push_back({"max_only", {x, absent(), number(0.5)}});
  samples.push_back({"min_above_max", {x, number(1.0), number(-1.0)}});
  samples.push_back(
      {"one_element_bounds", {x, {.shape = {1}, .values = {-1}}, {.shape = {1}, .values = {1}}}});
  const auto i8 = [](Shape shape, std::vector<double> values) {
    return SampleInput{.shape = std::move(shape), .values = std::move(values), .dtype = DType::i8};
  };
  samples.push_back({"i8", {i8({4}, {-128, -1, 0, 127}), i8({}, {-2}), i8({}, {100})}});
  samples.push_back({"i8_no_bounds", {i8({4}, {-128, -1, 0, 127})}});
  return samples;
}

std::vector<Sample> clip_gradient_samples() {
  std::vector<Sample> samples;
  for (const Sample& sample : gradient_samples(clip_samples())) {
    if (sample.inputs.front().dtype == DType::f32) samples.push_back(sample);
  }
  const SampleInput at_bounds{.shape = {5}, .values = {-2, -1, 0, 1, 2}};
  const SampleInput dy{.shape = {5}, .values = {1, 2, 3, 4, 5}};
  samples.push_back(
      {"at_bounds", {at_bounds, dy, {.shape = {}, .values = {-1}}, {.shape = {}, .values = {1}}}});
  return samples;
}

}  // namespace

void register_clip(OpRegistry& registry) {
  registry.add({.name = "Clip",
                .since = {{6}, {11, "bounds as inputs"}, {12, "integers"}, {13, "bfloat16"}},
                .inputs = {{"input"}, {"min", Arity::optional}, {"max", Arity::optional}},
                .outputs = {{"output"}},
                .infer = [](InferContext& context) { infer_clip_from(context, 1); },
                .upgrade = upgrade_clip,
                .aliases = {{0, 0, AliasKind::in_place}},
                .layout = kElementwise,
                .mixed_precision = kFollows,
                .backward = clip_rule,
                .samples = clip_samples});
  OpDef gradient =
      activation_gradient_row("ClipGrad", "X", {}, lower_clip_grad, clip_gradient_samples);
  gradient.inputs.push_back({"min", Arity::optional});
  gradient.inputs.push_back({"max", Arity::optional});
  gradient.infer = [](InferContext& context) { infer_clip_from(context, 2); };
  registry.add(std::move(gradient));
}

}  // namespace graft
