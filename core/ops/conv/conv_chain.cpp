#include "core/ops/conv/conv_chain.h"

#include <algorithm>

#include "core/ops/chain_limits.h"
#include "core/ops/conv/conv_cost.h"
#include "core/ops/infer.h"
#include "core/ops/kernels/conv_expr.h"
#include "core/ops/registry.h"

namespace graft {
namespace conv_chain {

const std::shared_ptr<Graph>& body_of(const Node& node) {
  const Attribute* const found = node.attributes.find("body");
  const auto* const body =
      found == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&found->value);
  if (body == nullptr || *body == nullptr) {
    fail(ErrorKind::model, node.label(), ": it has no body");
  }
  return *body;
}

int place_of_result(const Node& node) {
  return static_cast<int>(node.attributes.get_int("result", 0));
}

Attributes conv_attributes(const Node& node) {
  Attributes attributes = node.attributes;
  attributes.erase("body");
  attributes.erase("result");
  return attributes;
}

}  // namespace conv_chain

namespace {

void check_body(const InferContext& context) {
  const Node& node = context.node();
  const Graph& body = *conv_chain::body_of(node);
  const auto inputs = static_cast<int>(body.inputs().size());
  const int operands = node.input_count() - conv_chain::kFirstOperand;
  const int place = conv_chain::place_of_result(node);
  if (inputs != std::max(operands, 0) + 1 || body.outputs().size() != 1) {
    context.fail(ErrorKind::model, "its body has ", inputs, " inputs and ", body.outputs().size(),
                 " outputs, wanted ", std::max(operands, 0) + 1, " and 1");
  }
  if (place < 0 || place >= inputs) {
    context.fail(ErrorKind::model, "'result' is ", place, ", wanted an input of its body: 0 to ",
                 inputs - 1);
  }
}

/// The chain changes neither type nor shape.
void infer_conv_chain(InferContext& context) {
  check_body(context);
  context.require_same_dtype({conv_chain::kX, conv_chain::kW});
  set_conv_output(context, conv_chain::kW, context.dtype(conv_chain::kX));
  const SymShape* const w = context.shape(conv_chain::kW);
  if (context.shape(conv_chain::kX) != nullptr && w != nullptr) {
    check_conv_bias(context, conv_chain::kBias, (*w)[0]);
  }
  const Value& y = *context.node().output(0);
  const auto wanted = y.shape() ? y.shape()->known() : std::nullopt;
  for (int i = conv_chain::kFirstOperand; i < context.input_count(); ++i) {
    context.require_same_dtype({conv_chain::kX, i});
    const auto found = context.shape(i) == nullptr ? std::nullopt : context.shape(i)->known();
    if (wanted && found && found->size() != 1 && *found != *wanted) {
      context.fail(ErrorKind::shape, "operand ", i, " is ", *found, ", wanted ", *wanted,
                   " or one element");
    }
  }
}

using Ints = std::vector<std::int64_t>;

struct BodyNode {
  std::string_view op;
  std::vector<std::string_view> inputs;
  std::string_view output;
};

/// A body of inputs "x0", "x1", ..., of which the one at `place` is the convolution's result.
Attributes with_body(Attributes attributes, int inputs, int place,
                     const std::vector<BodyNode>& nodes) {
  const auto body = std::make_shared<Graph>("body");
  for (int i = 0; i < inputs; ++i) body->add_input(text("x", i), {});
  for (const BodyNode& node : nodes) {
    std::vector<Value*> values;
    for (const std::string_view input : node.inputs) values.push_back(body->find(input));
    body->add_node(node.op, "", values, {std::string(node.output)});
  }
  body->add_output(body->find(nodes.back().output));
  attributes.set({"body", body});
  attributes.set({"result", place});
  return attributes;
}

Attributes relu(Attributes attributes = {}) {
  return with_body(std::move(attributes), 1, 0, {{"Relu", {"x0"}, "y"}});
}

Attributes swish(Attributes attributes = {}) {
  return with_body(std::move(attributes), 1, 0,
                   {{"Sigmoid", {"x0"}, "gate"}, {"Mul", {"gate", "x0"}, "y"}});
}

/// relu(x0 + result), of a residual connection.
Attributes residual(Attributes attributes = {}) {
  return with_body(std::move(attributes), 2, 1,
                   {{"Add", {"x0", "x1"}, "sum"}, {"Relu", {"sum"}, "y"}});
}

/// Of a convolution with a bias, as those have that were folded; `operand`: of the chain.
Sample sample(std::string name, const Shape& x, const Shape& w, Attributes attributes,
              const Shape& operand = {}) {
  Sample made{std::move(name), {{.shape = x}, {.shape = w}, {.shape = {w[0]}}}, {}};
  made.inputs[conv_chain::kW].is_constant = true;
  if (operand.rank() > 0) made.inputs.push_back({.shape = operand});
  made.attributes = std::move(attributes);
  return made;
}

Sample without_bias(Sample one) {
  one.inputs[conv_chain::kBias] = absent();
  return one;
}

Sample with_unknown_weight(Sample one) {
  one.inputs[conv_chain::kW].is_constant = false;
  return one;
}

/// The large ones are cut into stripes: rows of an image, whole images, positions.
std::vector<Sample> conv_chain_samples() {
  const Ints one_each{1, 1, 1, 1};
  const Attributes strided{{"pads", Ints{0, 2, 3, 1}}, {"strides", Ints{2, 2}}};
  const Attributes dilated{{"dilations", Ints{2, 3}}, {"pads", Ints{1, 1, 1, 0}}};
  const Attributes depthwise{{"group", 32}, {"pads", one_each}};
  return {
      with_unknown_weight(sample("plain", {2, 3, 6, 7}, {4, 3, 3, 2}, relu())),
      without_bias(sample("no_bias", {2, 3, 6, 7}, {4, 3, 3, 2}, swish())),
      sample("residual", {1, 3, 5, 5}, {2, 3, 3, 3}, residual({{"pads", one_each}}), {1, 2, 5, 5}),
      sample("scalar", {1, 3, 5, 5}, {2, 3, 3, 3}, residual(), {1}),
      sample("asymmetric", {1, 2, 5, 6}, {3, 2, 3, 3}, relu(strided)),
      sample("dilated", {1, 2, 9, 8}, {2, 2, 3, 2}, swish(dilated)),
      sample("grouped", {2, 4, 5, 5}, {6, 2, 3, 3}, relu({{"group", 2}})),
      sample("same_upper", {1, 2, 5, 6}, {3, 2, 3, 2},
             relu({{"auto_pad", "SAME_UPPER"}, {"kernel_shape", Ints{3, 2}}})),
      sample("one_axis", {2, 3, 11}, {4, 3, 4}, relu({{"strides", Ints{2}}})),
      sample("three_axes", {1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, swish()),
      sample("one_pixel", {3, 4, 1, 1}, {2, 4, 1, 1}, relu()),
      sample("empty_batch", {0, 3, 5, 5}, {4, 3, 3, 3}, relu()),
      sample("rows", {1, 3, 121, 111}, {40, 3, 3, 3}, residual({{"pads", one_each}}),
             {1, 40, 121, 111}),
      sample("strided_rows", {1, 3, 299, 240}, {32, 3, 3, 3},
             swish({{"pads", Ints{0, 0, 1, 1}}, {"strides", Ints{2, 2}}})),
      sample("depthwise_rows", {2, 32, 97, 95}, {32, 1, 3, 3}, relu(depthwise)),
      sample("positions", {2, 3, 98, 99}, {32, 3, 1, 1}, residual(), {2, 32, 98, 99}),
      sample("line", {1, 3, 9001, 1}, {64, 3, 5, 1}, relu({{"pads", Ints{2, 0, 2, 0}}})),
  };
}

}  // namespace

/// Element-wise ops on the result of a Conv, while parts of it are in a cache. The body holds them,
/// without types, as that of an ElementwiseChain does; passes::fuse_conv_chains writes it. Operands
/// have the result's shape, or one element.
void register_conv_chain(OpRegistry& registry) {
  LayoutRule layout{LayoutRule::Kind::each, {conv_chain::kX}, {0}};
  for (int i = 0; i < kMostChainInputs; ++i) {
    layout.inputs.push_back(conv_chain::kFirstOperand + i);
  }
  registry.add({.name = "ConvChain",
                .domain = kInternalDomain,
                .inputs = {{"x"}, {"w"}, {"bias", Arity::optional}, {"operands", Arity::variadic}},
                .outputs = {{"y"}},
                .attributes = {{"auto_pad", AttributeType::text},
                               {"dilations", AttributeType::integers},
                               {"group", AttributeType::integer},
                               {"kernel_shape", AttributeType::integers},
                               {"pads", AttributeType::integers},
                               {"strides", AttributeType::integers},
                               {"body", AttributeType::graph, true},
                               {"result", AttributeType::integer, true}},
                .infer = infer_conv_chain,
                .layout = std::move(layout),
                .multiply_adds = gathering_multiply_adds,
                .backward = NotDifferentiable{"chains are joined after differentiation"},
                .samples = conv_chain_samples});
}

}  // namespace graft
