#include "core/ops/attention/feed_forward.h"

#include <array>

#include "core/base/at.h"
#include "core/ops/builder.h"
#include "core/ops/cost.h"
#include "core/ops/infer.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

void require_last_dim(const InferContext& context, int input, const Dim& wanted) {
  const SymShape* const shape = context.shape(input);
  if (shape != nullptr) require_dim(context, input, shape->rank() - 1, wanted);
}

/// Checks x, w1, w2, b1 and the activation.
void check_feed_forward_operands(const InferContext& context, int b1) {
  using enum feed_forward::Input;
  const std::string activation = context.attributes().get_string("activation", "");
  const OpDef* const def = OpRegistry::instance().find(activation);
  if (def == nullptr || !def->is_activation) {
    context.fail(ErrorKind::model, "'", activation, "' is no activation of hidden values");
  }
  context.require_same_dtype({kX, kW1, kW2, b1});
  context.require_rank(kX, 1, INT32_MAX);
  context.require_rank(kW1, 2, 2);
  context.require_rank(kW2, 2, 2);
  context.require_rank(b1, 1, 1);
  const SymShape* const w1 = context.shape(kW1);
  if (w1 == nullptr) return;
  require_last_dim(context, kX, (*w1)[0]);
  require_dim(context, kW2, 0, (*w1)[1]);
  require_dim(context, b1, 0, (*w1)[1]);
}

/// The output has the rows of x and the columns of `w`.
void set_rows(InferContext& context, int output, const SymShape* w) {
  const SymShape* const x = context.shape(feed_forward::kX);
  if (x == nullptr || w == nullptr) return context.set_output(output, context.dtype(0));
  std::vector<Dim> dims = x->dims();
  dims.back() = (*w)[1];
  context.set_output(output, context.dtype(0), SymShape(std::move(dims)));
}

void infer_feed_forward(InferContext& context) {
  using enum feed_forward::Input;
  check_feed_forward_operands(context, kForwardB1);
  context.require_same_dtype({kX, kForwardB2});
  context.require_rank(kForwardB2, 1, 1);
  const SymShape* const w2 = context.shape(kW2);
  if (w2 != nullptr) require_dim(context, kForwardB2, 0, (*w2)[1]);
  set_rows(context, 0, w2);
}

void infer_feed_forward_grad(InferContext& context) {
  using enum feed_forward::Input;
  check_feed_forward_operands(context, kGradB1);
  context.require_same_dtype({kX, kGradDy});
  const SymShape* const w2 = context.shape(kW2);
  if (w2 != nullptr) require_last_dim(context, kGradDy, (*w2)[1]);
  for (const int i : {kX, kW1, kW2}) context.copy_type(i, i);
  if (context.has_input(kGradB1)) context.copy_type(kGradB1, 3);
}

/// What nobody needs is left out, so that the kernel need not make it.
std::vector<Expr> feed_forward_rule(const Gradient& g) {
  using enum feed_forward::Input;
  constexpr std::array<std::string_view, 4> kStems{"x", "w1", "w2", "b1"};
  std::vector<std::string> names;
  for (int i = 0; i <= kForwardB1; ++i) {
    const bool is_wanted = i < g.input_count() && g.x(i) && g.needs(i);
    const std::string stem = text("feed_forward_d", at(kStems, i));
    names.push_back(is_wanted ? g.builder().graph().unique_name(stem) : "");
  }
  std::vector<Value*> inputs{g.x(kX).value(), g.x(kW1).value(), g.x(kW2).value(), g.dy().value()};
  inputs.push_back(g.input_count() > kForwardB1 ? g.x(kForwardB1).value() : nullptr);
  const Node* const node =
      g.builder().node("FeedForwardGrad", kInternalDomain, inputs, names, g.attributes());
  std::vector<Expr> result;
  for (int i = 0; i <= kForwardB1; ++i) result.push_back(g.builder().expr(node->output(i)));
  // The gradient of b2, summed by the engine.
  if (g.input_count() > kForwardB2) result.push_back(g.dy());
  return result;
}

struct FeedForwardCase {
  std::string name;
  Shape x;
  std::int64_t hidden;
  std::int64_t columns;
  Attributes attributes = {{"activation", "Gelu"}};
  bool has_b1 = true;
  bool has_b2 = true;
};

std::vector<FeedForwardCase> feed_forward_cases() {
  const auto named = [](const char* activation) { return Attributes{{"activation", activation}}; };
  return {
      {"no_batch", {5}, 7, 3},
      {"ones", {1, 1}, 1, 1},
      {"batch", {2, 3, 5}, 7, 4},
      {"no_biases", {6, 5}, 9, 4, named("Tanh"), false, false},
      {"first_bias", {6, 5}, 9, 4, named("Sigmoid"), true, false},
      {"second_bias", {6, 5}, 9, 4, named("Swish"), false, true},
      {"alpha", {6, 5}, 9, 4, {{"activation", "Swish"}, {"alpha", 1.7F}}},
      {"tanh_gelu", {6, 5}, 9, 4, {{"activation", "Gelu"}, {"approximate", "tanh"}}},
      {"mish", {6, 5}, 9, 4, named("Mish")},
      {"no_rows", {0, 5}, 7, 3},
      {"no_width", {3, 0}, 7, 3},
      {"no_hidden", {3, 5}, 0, 3},
      {"no_columns", {3, 5}, 7, 0},
      {"vectors", {5, 16}, 32, 16},
      {"ranges", {37, 16}, 144, 32, named("Swish")},
      {"ranges_odd", {37, 17}, 133, 19, named("Tanh")},
      {"blocks", {2, 205, 16}, 80, 16},
  };
}

std::vector<SampleInput> operands(const FeedForwardCase& c) {
  const std::int64_t width = c.x[c.x.rank() - 1];
  return {{c.x}, {{width, c.hidden}}, {{c.hidden, c.columns}}};
}

/// Far from the kink of Relu: with positive x and weights, h is above 0 for the columns with a
/// positive bias, and below it for those with a bias that outweighs the rest.
Sample relu_sample() {
  const SampleInput bias{.shape = {4}, .values = {-20.0, 0.5, -30.0, 0.25}};
  return {"relu",
          {{{6, 3}, 0.5, 1.0}, {{3, 4}, 0.5, 1.0}, {{4, 2}}, bias, {{2}}},
          {{"activation", "Relu"}}};
}

std::vector<Sample> feed_forward_samples() {
  std::vector<Sample> samples{relu_sample()};
  for (const FeedForwardCase& c : feed_forward_cases()) {
    Sample sample{c.name, operands(c), c.attributes};
    sample.inputs.push_back(c.has_b1 ? SampleInput{{c.hidden}} : absent());
    if (c.has_b2) sample.inputs.push_back({{c.columns}});
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<Sample> feed_forward_grad_samples() {
  std::vector<Sample> samples;
  for (const FeedForwardCase& c : feed_forward_cases()) {
    Sample sample{c.name, operands(c), c.attributes, c.has_b1 ? 4 : 3};
    std::vector<std::int64_t> dims = c.x.dims();
    dims.back() = c.columns;
    sample.inputs.push_back({Shape(dims)});
    sample.inputs.push_back(c.has_b1 ? SampleInput{{c.hidden}} : absent());
    if (c.name == "blocks") sample.absolute = 5e-5;  // long sums
    samples.push_back(std::move(sample));
  }
  return samples;
}

/// Each row meets the weights so many times.
template <std::int64_t times_w1, std::int64_t times_w2>
std::optional<std::int64_t> feed_forward_multiply_adds(const Node& node) {
  using enum feed_forward::Input;
  const std::optional<Shape> x = shape_if_known(node.input(kX));
  const std::optional<Shape> w1 = shape_if_known(node.input(kW1));
  const std::optional<Shape> w2 = shape_if_known(node.input(kW2));
  if (!x || !w1 || !w2 || x->rank() == 0) return std::nullopt;
  return checked_multiply(
      x->size(0, x->rank() - 1),
      checked_add(checked_multiply(w1->size(), times_w1), checked_multiply(w2->size(), times_w2)));
}

const std::vector<AttributeDef> kFeedForwardAttributes{{"activation", AttributeType::text, true},
                                                       {"approximate", AttributeType::text},
                                                       {"alpha", AttributeType::number}};

}  // namespace

/// y = f(x w1 + b1) w2 + b2 by blocks of rows: the hidden values f(...) are never in memory as a
/// whole, and neither are their gradients. f is the op that `activation` names, with that op's
/// attributes. The gradient makes h = x w1 + b1 again, block by block.
/// x: [..., width], w1: [width, hidden], w2: [hidden, columns], b1: [hidden], b2: [columns],
/// y: [..., columns].
void register_feed_forward(OpRegistry& registry) {
  registry.add({.name = "FeedForward",
                .domain = kInternalDomain,
                .inputs = {{"x"}, {"w1"}, {"w2"}, {"b1", Arity::optional}, {"b2", Arity::optional}},
                .outputs = {{"y"}},
                .attributes = kFeedForwardAttributes,
                .infer = infer_feed_forward,
                .multiply_adds = feed_forward_multiply_adds<1, 1>,
                .backward = feed_forward_rule,
                .samples = feed_forward_samples});
  registry.add({.name = "FeedForwardGrad",
                .domain = kInternalDomain,
                .inputs = {{"x"}, {"w1"}, {"w2"}, {"dy"}, {"b1", Arity::optional}},
                .outputs = {{"dx", Arity::optional},
                            {"dw1", Arity::optional},
                            {"dw2", Arity::optional},
                            {"db1", Arity::optional}},
                .attributes = kFeedForwardAttributes,
                .infer = infer_feed_forward_grad,
                .aliases = {{0, feed_forward::kX, AliasKind::in_place},
                            {0, feed_forward::kGradDy, AliasKind::in_place}},
                // The first again, and both twice.
                .multiply_adds = feed_forward_multiply_adds<3, 2>,
                .backward = NotDifferentiable{"second derivatives of FeedForward are not offered"},
                .samples = feed_forward_grad_samples});
}

}  // namespace graft
