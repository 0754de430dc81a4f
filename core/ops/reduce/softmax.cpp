#include "core/ops/builder.h"
#include "core/ops/reduce/softmax_lowering.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_softmax(InferContext& context) {
  if (const SymShape* const shape = context.shape(0)) {
    normalize_axis(context.attributes().get_int("axis", -1), shape->rank(), context.node().label());
  }
  context.copy_type(0);
}

/// Two inputs of one type and shape.
void infer_softmax_grad(InferContext& context) {
  context.require_same_dtype({0, 1});
  const SymShape* const y = context.shape(0);
  const SymShape* const dy = context.shape(1);
  if (y != nullptr && dy != nullptr && y->known() && dy->known() && !(*y == *dy)) {
    context.fail(ErrorKind::shape, "inputs must have one shape, found ", *y, " and ", *dy);
  }
  infer_softmax(context);
}

bool is_one(const Dim& dim) {
  return dim.is_known() && dim.value() == 1;
}

/// Whether the op along `axis` of the newest form means the same as the old form, which joins all
/// axes from `axis` on.
bool is_alone(const SymShape& shape, int axis) {
  for (int i = axis + 1; i < shape.rank(); ++i) {
    if (!is_one(shape[i])) return false;
  }
  return true;
}

/// Before 13 the input is made two-dimensional at `axis` (default 1), and the rows are normalised.
void upgrade_softmax(Node& node, std::int64_t from, Builder& builder) {
  if (from >= 13 || node.input(0) == nullptr || node.output(0) == nullptr) return;
  const std::int64_t axis = node.attributes.get_int("axis", 1);
  const auto& shape = node.input(0)->shape();
  // An axis equal to the rank gives rows of one element: only the long form says that.
  if (shape && axis < shape->rank() && axis >= -shape->rank() &&
      is_alone(*shape, normalize_axis(axis, shape->rank(), node.label()))) {
    node.attributes.set({"axis", axis});
    return;
  }
  const Expr x = builder.expr(node.input(0));
  const Expr rows = call("Flatten", {x}, {{"axis", axis}});
  const Expr result = call(node.op_type(), {rows}, {{"axis", -1}});
  const Expr back = call("Reshape", {result, call("Shape", {x})}, {{"allowzero", 1}});
  builder.graph().replace_all_uses(node.output(0), back.value());
}

Attributes softmax_axis(const Gradient& g) {
  return {{"axis", g.attributes().get_int("axis", -1)}};
}

std::vector<std::int64_t> softmax_axes(const Gradient& g) {
  return {g.attributes().get_int("axis", -1)};
}

std::vector<Expr> softmax_rule(const Gradient& g) {
  return {call_internal("SoftmaxGrad", {g.y(), g.dy()}, softmax_axis(g))};
}

std::vector<Expr> log_softmax_rule(const Gradient& g) {
  return {call_internal("LogSoftmaxGrad", {g.y(), g.dy()}, softmax_axis(g))};
}

/// z = y (d - sum(d y)); with u = dL/dz: dL/dd = y (u - sum(u y)),
/// dL/dy = u (d - sum(d y)) - d sum(u y).
std::vector<Expr> softmax_grad_rule(const Gradient& g) {
  const Expr y = g.x(0);
  const Expr d = g.x(1);
  const Expr u = g.dy();
  const auto sum = [&](const Expr& e) { return reduce_sum(e, softmax_axes(g), true); };
  return {u * (d - sum(d * y)) - d * sum(u * y),
          call_internal("SoftmaxGrad", {y, u}, softmax_axis(g))};
}

/// z = d - exp(y) sum(d); dL/dd = u - sum(u exp(y)), dL/dy = -u exp(y) sum(d).
std::vector<Expr> log_softmax_grad_rule(const Gradient& g) {
  const Expr u = g.dy();
  const auto sum = [&](const Expr& e) { return reduce_sum(e, softmax_axes(g), true); };
  const Expr weighted = u * exp(g.x(0));
  return {-(weighted * sum(g.x(1))), u - sum(weighted)};
}

std::vector<Sample> samples_of(int inputs, bool distinct) {
  const auto sample = [&](std::string name, Shape shape, int axis) {
    const SampleInput input{
        .shape = std::move(shape), .low = -3.0, .high = 3.0, .distinct = distinct};
    return Sample{std::move(name),
                  std::vector<SampleInput>(static_cast<std::size_t>(inputs), input),
                  {{"axis", axis}}};
  };
  return {
      sample("last", {3, 5}, -1),
      sample("first", {3, 5}, 0),
      sample("middle", {2, 4, 3}, 1),
      sample("vector", {7}, 0),
      sample("one_size_axis", {3, 1}, 1),
      sample("one_element", {1, 1}, 0),
      sample("empty", {0, 3}, 1),
      sample("empty_axis", {3, 0}, 1),
      sample("exact_vectors", {2, 64}, 1),
      sample("odd_row", {3, 517}, 1),
      sample("odd_columns", {5, 301}, 0),
      sample("large", {301, 77}, 1),
      sample("large_middle", {5, 9, 401}, 1),
  };
}

std::vector<Sample> softmax_samples() {
  std::vector<Sample> samples = samples_of(1, false);
  samples.push_back({"default_axis", {{.shape = {2, 3, 4}}}});
  samples.push_back({"far_from_zero", {{.shape = {4, 9}, .low = 80.0, .high = 90.0}}});
  return samples;
}
std::vector<Sample> hardmax_samples() {
  std::vector<Sample> samples = samples_of(1, true);
  samples.push_back({"ties", {{.shape = {2, 3}, .values = {1, 2, 2, 0, 0, 0}}}});
  return samples;
}
/// Outputs in the range that the op can give.
std::vector<Sample> softmax_grad_samples_in(double low, double high) {
  std::vector<Sample> samples = samples_of(2, false);
  for (Sample& sample : samples) {
    sample.inputs[0].low = low;
    sample.inputs[0].high = high;
    sample.inputs[1].low = -1.0;
    sample.inputs[1].high = 1.0;
  }
  return samples;
}
std::vector<Sample> softmax_grad_samples() {
  return softmax_grad_samples_in(0.0, 0.5);
}
std::vector<Sample> log_softmax_grad_samples() {
  return softmax_grad_samples_in(-6.0, -1.0);
}

OpDef along_axis(std::string_view name, Backward backward, Samples samples) {
  return {.name = name,
          .since = {{1}, {11, "negative axes"}, {13, "along one axis, default -1"}},
          .inputs = {{"input"}},
          .outputs = {{"output"}},
          .attributes = {{"axis", AttributeType::integer}},
          .infer = infer_softmax,
          .upgrade = upgrade_softmax,
          .aliases = {{0, 0, AliasKind::in_place}},
          .backward = backward,
          .samples = samples};
}

OpDef gradient_op(std::string_view name, Lowering lower, Rule rule, Samples samples) {
  return {.name = name,
          .domain = kInternalDomain,
          .since = {{1}},
          .inputs = {{"output"}, {"output_gradient"}},
          .outputs = {{"input_gradient"}},
          .attributes = {{"axis", AttributeType::integer}},
          .infer = infer_softmax_grad,
          .aliases = {{0, 0, AliasKind::in_place}, {0, 1, AliasKind::in_place}},
          .lower = lower,
          .backward = rule,
          .samples = samples};
}

}  // namespace

/// Softmax, LogSoftmax, Hardmax, and the gradients of the first two, which need the output only:
/// SoftmaxGrad: y (dy - sum(dy y)); LogSoftmaxGrad: dy - exp(y) sum(dy).
void register_softmax(OpRegistry& registry) {
  registry.add(along_axis("Softmax", softmax_rule, softmax_samples));
  registry.add(along_axis("LogSoftmax", log_softmax_rule, softmax_samples));
  registry.add(along_axis("Hardmax",
                          NotDifferentiable{"it is constant wherever its derivative exists"},
                          hardmax_samples));
  registry.add(
      gradient_op("SoftmaxGrad", lower_softmax_grad, softmax_grad_rule, softmax_grad_samples));
  registry.add(gradient_op("LogSoftmaxGrad", lower_log_softmax_grad, log_softmax_grad_rule,
                           log_softmax_grad_samples));
}

}  // namespace graft
