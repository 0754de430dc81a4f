#include "core/layers/change_opset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "core/layers/output_types.h"
#include "core/ops/builder.h"
#include "tests/core/error_of.h"
#include "tests/core/layers/small_models.h"

namespace graft {
namespace {

using ::testing::HasSubstr;

std::set<std::string> ops_of(const Model& model) {
  std::set<std::string> ops;
  for (const auto& node : model.graph().nodes()) ops.insert(node->op_type());
  return ops;
}

/// One node 'node' in the newest opset, on "x".
Model one_node(const char* op, const ValueType& x, const std::vector<Tensor>& constants,
               Attributes attributes = {}, std::int64_t opset = 23, int outputs = 1) {
  Model model;
  model.set_opset("", opset);
  Graph& graph = model.graph();
  std::vector<Value*> inputs{graph.add_input("x", x)};
  for (const Tensor& constant : constants) {
    inputs.push_back(constant.defined() ? graph.add_initializer("", constant) : nullptr);
  }
  std::vector<std::string> names{"y"};
  for (int i = 1; i < outputs; ++i) names.push_back("y" + std::to_string(i));
  Node* const node = graph.add_node(op, "", inputs, names, std::move(attributes));
  node->set_name("node");
  for (int i = 0; i < outputs; ++i) graph.add_output(node->output(i));
  edit::complete_output_types(model);
  return model;
}

ValueType f32(const SymShape& shape) {
  return {DType::f32, shape};
}

Tensor ints(const std::vector<std::int64_t>& values) {
  return Tensor::from(Shape{static_cast<std::int64_t>(values.size())}, values);
}

std::vector<float> wave(std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 7 % 11) - 4.5F);
  return values;
}

/// All outputs in a row, as numbers.
std::vector<double> outputs_of(const Model& model, const Shape& shape) {
  Session session(model);
  std::vector<double> all;
  for (const Tensor& output : session.run(std::vector{Tensor::from(shape, wave(shape.size()))})) {
    const std::vector<double> values = to_double(output);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// The model in opset 13 gives what it gave, and has none of the ops named.
void check_lowered(Model model, const Shape& shape, const std::set<std::string>& gone = {},
                   std::int64_t opset = 13) {
  const std::vector<double> wanted = outputs_of(model, shape);
  const ValueType type = model.graph().outputs()[0]->type();
  edit::change_opset(model, opset);
  SCOPED_TRACE(print(model));
  verify(model);
  EXPECT_EQ(model.opset(), opset);
  EXPECT_EQ(model.graph().outputs()[0]->name(), "y");
  EXPECT_EQ(model.graph().outputs()[0]->type(), type);
  for (const std::string& op : gone) EXPECT_FALSE(ops_of(model).contains(op)) << op;
  const std::vector<double> found = outputs_of(model, shape);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 2e-6) << i;
}

TEST(ChangeOpset, WritesNewOpsInOlderOnes) {
  const ValueType x = f32({Dim("N"), 4, 6});
  const Tensor weight = Tensor::from<float>({6}, {1, -1, 2, 0.5F, 3, 1});
  check_lowered(one_node("LayerNormalization", x, {weight, weight}), {2, 4, 6},
                {"LayerNormalization"});
  check_lowered(one_node("LayerNormalization", x, {Tensor::full(DType::f32, {4, 6}, 2)},
                         {{"axis", 1}}, 23, 3),
                {2, 4, 6}, {"LayerNormalization"});
  check_lowered(one_node("RMSNormalization", x, {weight}), {2, 4, 6}, {"RMSNormalization"});
  const Tensor channels = Tensor::from<float>({4}, {1, -1, 2, 0.5F});
  check_lowered(one_node("GroupNormalization", x, {channels, channels}, {{"num_groups", 2}}),
                {3, 4, 6}, {"GroupNormalization"});
  check_lowered(one_node("GroupNormalization", x, {channels, channels}, {{"num_groups", 2}}),
                {3, 4, 6}, {"GroupNormalization"}, 18);
  for (const char* op : {"Gelu", "Mish", "HardSwish"}) {
    check_lowered(one_node(op, x, {}), {2, 4, 6}, {op});
  }
  check_lowered(one_node("Gelu", x, {}, {{"approximate", "tanh"}}), {2, 4, 6}, {"Gelu"});
  check_lowered(one_node("Swish", x, {}, {{"alpha", 0.5F}}, 24), {2, 4, 6}, {"Swish"});
  check_lowered(one_node("Trilu", x, {Tensor::scalar<std::int64_t>(1)}), {2, 4, 6}, {"Trilu"});
  check_lowered(one_node("Trilu", x, {}, {{"upper", 0}}), {2, 4, 6}, {"Trilu"});
  check_lowered(one_node("Trilu", f32({Dim("N"), Dim("M")}), {}), {3, 5}, {"Trilu"});
  check_lowered(one_node("CastLike", x, {ints({1})}), {2, 4, 6}, {"CastLike"});
}

/// The maxima of windows of 3 over x [1,2,7,6], each added to a one where it was found.
Model pooled_back(std::int64_t stride) {
  Model model;
  model.set_opset("", 18);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", f32({1, 2, 7, 6})));
  const std::vector<Expr> pool = call_multi("MaxPool", "", {x}, 2,
                                            {{"kernel_shape", std::vector<std::int64_t>{3, 3}},
                                             {"pads", std::vector<std::int64_t>{1, 0, 1, 1}},
                                             {"strides", std::vector<std::int64_t>{stride, 2}}});
  const Shape flat{pool[0].shape().size()};
  const Expr ones = builder.expr(builder.constant(Tensor::full(DType::f32, Shape{84}, 1.0)));
  const Expr sums = call("ScatterElements", {ones, reshape(pool[1], flat), reshape(pool[0], flat)},
                         {{"reduction", "add"}});
  graph.rename(sums.value(), "y");
  graph.add_output(sums.value());
  return model;
}

TEST(ChangeOpset, AddsUpWhereScattersCouldOnlyOverwrite) {
  for (const std::int64_t stride : {1, 2, 3}) check_lowered(pooled_back(stride), {1, 2, 7, 6});
  const Tensor indices =
      Tensor::from<std::int64_t>({4, 2}, {0, 1, -1, 2, 0, 1, 1, -1});  // each place twice
  const Tensor rows = Tensor::from<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  check_lowered(one_node("ScatterND", f32({2, 3, 2}), {indices, rows}, {{"reduction", "add"}}),
                {2, 3, 2});
}

TEST(ChangeOpset, WritesSettingsInTheOlderForm) {
  const ValueType x = f32({Dim("N"), 4, 6});
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceSum"}) {
    check_lowered(one_node(op, x, {ints({-1, 1})}), {2, 4, 6});
  }
  check_lowered(one_node("ReduceMean", x, {ints({})}, {{"noop_with_empty_axes", 1}}), {2, 4, 6},
                {"ReduceMean"});
  check_lowered(one_node("ReduceMean", x, {}, {{"keepdims", 0}}), {2, 4, 6});
  check_lowered(one_node("Shape", x, {}, {{"start", 1}}), {2, 4, 6});
  check_lowered(one_node("Shape", x, {}, {{"start", 0}}), {2, 4, 6});
  check_lowered(one_node("Reshape", x, {ints({-1, 24})}, {{"allowzero", 1}}), {2, 4, 6});
  check_lowered(one_node("Split", x, {}, {{"axis", 2}, {"num_outputs", 4}}, 23, 4), {2, 4, 6});
  check_lowered(one_node("Split", x, {}, {{"axis", 1}, {"num_outputs", 2}}, 23, 2), {2, 4, 6});
  check_lowered(one_node("Pad", x, {ints({1, 2}), Tensor::scalar(0.5F), ints({-1})}), {2, 4, 6});
  check_lowered(one_node("BatchNormalization", x,
                         {Tensor::full(DType::f32, {4}, 2), Tensor::zeros(DType::f32, {4}),
                          Tensor::zeros(DType::f32, {4}), Tensor::full(DType::f32, {4}, 3)},
                         {{"training_mode", 0}}),
                {2, 4, 6});
  const ValueType image = f32({Dim("N"), 1, 4, 4});
  check_lowered(one_node("Resize", image, {Tensor(), Tensor::from<float>({2}, {2, 1.5F})},
                         {{"axes", std::vector<std::int64_t>{2, 3}}, {"mode", "linear"}}),
                {1, 1, 4, 4});
  check_lowered(one_node("Resize", f32({1, 1, 4, 4}), {Tensor(), Tensor(), ints({6, 2})},
                         {{"axes", std::vector<std::int64_t>{2, 3}}, {"antialias", 0}}),
                {1, 1, 4, 4});
  check_lowered(one_node("AveragePool", image, {},
                         {{"kernel_shape", std::vector<std::int64_t>{2, 2}},
                          {"dilations", std::vector<std::int64_t>{1, 1}}}),
                {2, 1, 4, 4});
}

Model attention(const SymShape& shape, Attributes attributes, const Tensor& mask = {}) {
  Model model;
  model.set_opset("", 23);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", f32(shape));
  std::vector<Value*> inputs{x, x, x};
  if (mask.defined()) inputs.push_back(graph.add_initializer("mask", mask));
  Node* const node = graph.add_node("Attention", "", inputs, {"y"}, std::move(attributes));
  node->set_name("node");
  graph.add_output(node->output());
  edit::complete_output_types(model);
  return model;
}

TEST(ChangeOpset, WritesPlainAttentionForAnyBatch) {
  const SymShape open{Dim("N"), 2, 3, 4};
  check_lowered(attention(open, {}), {2, 2, 3, 4}, {"Attention"});
  check_lowered(attention(open, {{"scale", 0.3F}}, Tensor::from<float>({3}, {0, -1, 2})),
                {2, 2, 3, 4}, {"Attention"});
  check_lowered(
      attention(open, {}, Tensor::from<std::uint8_t>({3}, {1, 0, 1}).cast(DType::boolean)),
      {2, 2, 3, 4}, {"Attention"});
}

/// Where the sizes are all known, the op's own decomposition serves.
TEST(ChangeOpset, DecomposesWhereShapesAreKnown) {
  check_lowered(attention({1, 2, 3, 4}, {{"is_causal", 1}}), {1, 2, 3, 4}, {"Attention"});
}

TEST(ChangeOpset, SplitsTheLongestAxis) {
  Model model = one_node("Split", f32({INT64_MAX}), {}, {{"num_outputs", 2}}, 18, 2);
  edit::change_opset(model, 13);
  EXPECT_EQ(model.graph().outputs()[0]->known_shape(), Shape({std::int64_t{1} << 62}));
}

TEST(ChangeOpset, RefusesByNodeAndReason) {
  const auto refusal = [](Model model, std::int64_t opset = 13) {
    const std::string before = print(model);
    const Error error = error_of([&] { edit::change_opset(model, opset); });
    EXPECT_EQ(print(model), before);
    return std::string(error.what());
  };
  const ValueType image = f32({Dim("N"), 1, 4, 4});
  const Tensor twice = Tensor::from<float>({4}, {1, 1, 2, 2});
  EXPECT_EQ(
      refusal(one_node("Resize", image, {Tensor(), twice}, {{"antialias", 1}, {"mode", "linear"}})),
      "Resize node 'node': opset 13 lacks antialias = 1");
  EXPECT_EQ(
      refusal(one_node("Pad", image, {ints({0, 0, 1, 1, 0, 0, 1, 1})}, {{"mode", "wrap"}}), 18),
      "Pad node 'node': opset 18 lacks mode = wrap");
  EXPECT_THAT(refusal(one_node("BitwiseNot", {DType::i32, SymShape{2}}, {})),
              HasSubstr("BitwiseNot node 'node': opset 13 lacks this op"));
  EXPECT_THAT(refusal(one_node("Gelu", image, {}), 12), HasSubstr("opset 12: wanted one from 13"));
  EXPECT_THAT(refusal(one_node("Gelu", image, {}), 99), HasSubstr("wanted one from 13 to "));
  EXPECT_THAT(refusal(attention({Dim("N"), 2, 3, 4}, {{"is_causal", 1}})),
              HasSubstr("it can be written in older ones once all shapes are known"));
  EXPECT_THAT(
      refusal(one_node("ScatterND", f32({std::int64_t{1} << 40}),
                       {Tensor::from<std::int64_t>({1, 1}, {0}), Tensor::from<float>({1}, {1})},
                       {{"reduction", "add"}})),
      HasSubstr("it needs a table of 1099511627776 x 1 entries"));
  EXPECT_EQ(refusal(one_node("Sin", {DType::bf16, SymShape{2}}, {}), 21),
            "Sin node 'node': opset 21 lacks it in bf16, which came with opset 22");
}

TEST(ChangeOpset, GoesUpToo) {
  Model model = model_of(
      {Dim("N"), 4}, {Linear{.name = "a", .out = 3}, Relu6{.name = "b"}, Dropout{.name = "y"}}, 9);
  model.graph().outputs()[0]->set_type(f32({Dim("samples"), 3}));
  check_lowered(model.clone(), {2, 4}, {}, 21);
  Model same = model.clone();
  edit::change_opset(model, 17);
  const std::string once = print(model);
  edit::change_opset(model, 17);
  EXPECT_EQ(print(model), once);
}

}  // namespace
}  // namespace graft
