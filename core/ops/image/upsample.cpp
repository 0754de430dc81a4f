#include <algorithm>

#include "core/ops/builder.h"
#include "core/ops/image/resize.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// The scales as input 1 of Resize's inputs has them: an attribute before opset 9.
Value* scales_of(const Node& node, Builder& builder) {
  if (node.input(1) != nullptr) return node.input(1);
  if (!node.attributes.has("scales")) fail(ErrorKind::model, node.label(), ": no scales");
  const std::vector<float> numbers = node.attributes.get_floats("scales");
  return builder.constant(
      Tensor::from<float>({static_cast<std::int64_t>(numbers.size())}, numbers));
}

Expr as_resize(const Node& node, Builder& builder) {
  const std::string mode = node.attributes.get_string("mode", "nearest");
  Node* const newest =
      builder.node("Resize", "", {node.input(0), nullptr, scales_of(node, builder)}, 1,
                   {{"mode", mode == "bilinear" ? std::string("linear") : mode}});
  set_old_resize_modes(*newest);
  return builder.expr(newest->output(0));
}

std::vector<Expr> expand_upsample(const Node& node, Builder& builder) {
  return {as_resize(node, builder)};
}

void upgrade_upsample(Node& node, std::int64_t, Builder& builder) {
  builder.graph().replace_all_uses(node.output(0), as_resize(node, builder).value());
}

/// By the inference of the Resize that it becomes.
void infer_upsample(InferContext& context) {
  const SymShape* const x = context.shape(0);
  if (x == nullptr) return context.set_output(0, context.dtype(0));
  Graph graph;
  Builder builder(graph);
  Value* const data = graph.add_input("x", context.input(0).type());
  Value* scales = nullptr;
  if (!context.has_input(1)) {
    scales = scales_of(context.node(), builder);
  } else if (const Tensor known = context.constant(1); known.defined()) {
    scales = builder.constant(known);
  } else {
    scales = graph.add_input("scales", context.input(1).type());
  }
  const Node* const resize = builder.node("Resize", "", {data, nullptr, scales}, 1);
  context.set_output(0, context.dtype(0), resize->output(0)->shape());
}

std::vector<Sample> upsample_samples() {
  const SampleInput x{{1, 2, 3, 4}};
  const auto scales = [](std::vector<double> values) {
    return SampleInput{.shape = {4}, .values = std::move(values), .is_constant = true};
  };
  return {
      {"nearest", {x, scales({1, 1, 2, 3})}},
      {"linear", {x, scales({1, 1, 2, 1.5})}, {{"mode", "linear"}}},
      {"attribute", {x}, {{"scales", std::vector<float>{1, 1, 2, 2}}}},
      {"empty", {{{0, 2, 3, 4}}, scales({1, 1, 2, 3})}},
  };
}

}  // namespace

void set_old_resize_modes(Node& node) {
  node.attributes.set({"coordinate_transformation_mode", "asymmetric"});
  const Tensor scales = constant_of(node.input(2));
  std::vector<double> numbers;
  if (scales.defined()) numbers = to_double(scales);
  const bool reduces = std::ranges::any_of(numbers, [](double scale) { return scale < 1; });
  const bool enlarges = std::ranges::any_of(numbers, [](double scale) { return scale > 1; });
  if (reduces && enlarges && node.attributes.get_string("mode", "nearest") == "nearest") {
    fail(ErrorKind::unsupported, node.label(),
         ": enlarging some axes and reducing others to the nearest element, in the way of before "
         "opset 11; export the model with opset 11 or later");
  }
  node.attributes.set({"nearest_mode", reduces ? "ceil" : "floor"});
}

/// Upsample, which became Resize in opset 10.
void register_upsample(OpRegistry& registry) {
  registry.add({.name = "Upsample",
                .since = {{7}, {9, "scales as an input"}, {10, "deprecated"}},
                .inputs = {{"X"}, {"scales", Arity::optional}},  // an attribute before opset 9
                .outputs = {{"Y"}},
                .attributes = {{"mode", AttributeType::text}, {"scales", AttributeType::numbers}},
                .infer = infer_upsample,
                .upgrade = upgrade_upsample,
                .backward = Decomposition{expand_upsample},
                .samples = upsample_samples});
}

}  // namespace graft
