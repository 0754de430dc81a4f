// MaxPool of a training step, which keeps where its maxima were.
#include "core/ops/pool/pool_argmax.h"
#include "core/ops/kernels/conv_expr.h"
#include "core/ops/kernels/window.h"
#include "core/ops/pool/pool_rows.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

bool has_relu(const Attributes& attributes) {
  return attributes.get_int("relu", 0) != 0;
}

void infer_max_pool_with_argmax(InferContext& context) {
  const std::int64_t most = has_relu(context.attributes()) ? kNoTap : kNoTap + 1;
  const std::int64_t elements = Shape(context.attributes().get_ints("kernel_shape")).size();
  if (elements > most) {
    context.fail(ErrorKind::shape, "a window has ", elements, " elements, of which a byte names ",
                 most);
  }
  infer_with_indices(context, DType::u8);
  const SymShape* const x = context.shape(0);
  if (x != nullptr) check_conv_bias(context, 1, (*x)[1]);
}

/// dx has the attribute `shape`.
void infer_max_pool_grad_with_argmax(InferContext& context) {
  const Shape x(context.attributes().get_ints("shape"));
  for (const int i : {0, 1}) check_pool_gradient(context, x, i);
  const DType argmax = context.dtype(1);
  if (argmax != DType::u8 && argmax != DType::undefined) {
    context.fail(ErrorKind::type, "argmax is of type ", argmax, ", wanted ", DType::u8);
  }
  context.set_output(0, context.dtype(0), SymShape(x));
}

/// What the Relu stops, argmax stops too. The bias gets what its channel gets.
std::vector<Expr> max_pool_with_argmax_rule(const Gradient& g) {
  Attributes attributes = with_shape(g.attributes(), g.x().shape());
  attributes.erase("relu");
  const Expr dx = call_internal("MaxPoolGradWithArgmax", {g.dy(), g.y(1)}, attributes);
  if (g.node().input(1) == nullptr) return {dx};
  return {dx, sum_but_channels(dx)};
}

std::vector<Sample> max_pool_with_argmax_samples() {
  std::vector<Sample> samples;
  for (const PoolCase& c : pool_cases()) {
    samples.push_back({c.name, {distinct_image(c.x)}, c.attributes, 2});
    Attributes attributes = c.attributes;
    attributes.set({"relu", 1});
    SampleInput x = distinct_image(c.x);
    x.high += 4;  // the middle, which one element alone has, is not the Relu's kink
    samples.push_back({c.name + "_relu", {x}, attributes, 2});
    const SampleInput bias{.shape = {c.x[1]}, .low = -9.0, .high = 9.0};
    samples.push_back({c.name + "_bias_relu", {distinct_image(c.x), bias}, attributes, 2});
  }
  return samples;
}

std::vector<Sample> max_pool_grad_with_argmax_samples() {
  std::vector<Sample> samples;
  for (const PoolCase& c : pool_cases()) {
    const SampleInput argmax{.shape = c.y, .low = 0.0, .high = 3.0, .dtype = DType::u8};
    samples.push_back({c.name, {{.shape = c.y}, argmax}, with_shape(c.attributes, c.x)});
  }
  return samples;
}

}  // namespace

/// MaxPool for training: argmax says which of the window's elements within the image is the first
/// maximum, counted in row-major order. The gradient reads these bytes in place of x. For windows
/// of at most 256 elements. A number for each channel may be added to the maxima, and a Relu be
/// applied to that: where it makes 0 of one, argmax is 255, which names no element.
void register_pool_argmax(OpRegistry& registry) {
  registry.add({.name = "MaxPoolWithArgmax",
                .domain = kInternalDomain,
                .inputs = {{"x"}, {"bias", Arity::optional}},
                .outputs = {{"y"}, {"argmax"}},
                .attributes = pool_attributes({{"relu", AttributeType::integer}}),
                .infer = infer_max_pool_with_argmax,
                .layout = {LayoutRule::Kind::together, {0}, {0, 1}},
                .backward = max_pool_with_argmax_rule,
                .samples = max_pool_with_argmax_samples});
  registry.add({.name = "MaxPoolGradWithArgmax",
                .domain = kInternalDomain,
                .inputs = {{"dy"}, {"argmax"}},
                .outputs = {{"dx"}},
                .attributes = pool_attributes({{"shape", AttributeType::integers, true}}),
                .infer = infer_max_pool_grad_with_argmax,
                .layout = {LayoutRule::Kind::together, {0, 1}, {0}},
                .backward = NotDifferentiable{"second derivatives of max pooling are not offered"},
                .samples = max_pool_grad_with_argmax_samples});
}

}  // namespace graft
