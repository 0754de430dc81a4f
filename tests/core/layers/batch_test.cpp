#include "core/layers/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/graph/verify.h"
#include "core/layers/batch_axis.h"
#include "core/ops/builder.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using edit::BatchAxis;
using testing::HasSubstr;

/// Numbers without a pattern, from -1 to 1.
Tensor numbers(const Shape& shape, double seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    values.push_back(static_cast<float>(std::sin(static_cast<double>(i * i) + seed)));
  }
  return Tensor::from(shape, values);
}

Tensor ints(const std::vector<std::int64_t>& values) {
  return Tensor::from(Shape{static_cast<std::int64_t>(values.size())}, values);
}

/// A model under construction, of which the exporter knew the batch.
struct Export {
  Model model;
  Builder builder{model.graph()};

  explicit Export(const Shape& input) {
    model.set_opset("", 17);
    model.graph().add_input("x", {DType::f32, SymShape(input)});
  }
  Expr x() { return builder.expr(model.graph().find("x")); }
  Expr weight(const Shape& shape, double seed) { return constant(numbers(shape, seed)); }
  Expr constant(Tensor tensor) { return builder.expr(builder.constant(std::move(tensor))); }
  Expr shaped(const Expr& x, const std::vector<std::int64_t>& target) {
    return call("Reshape", {x, constant(ints(target))});
  }
  Model with(const Expr& output) {
    model.graph().add_output(output.value());
    return std::move(model);
  }
};

/// What sample `index` of `count` is in a tensor with the batch along `axis`.
std::vector<float> sample(const Tensor& all, int axis, std::int64_t index) {
  const Shape& shape = all.shape();
  const std::int64_t part = shape.size(axis + 1, shape.rank());
  std::vector<float> result;
  for (std::int64_t i = 0; i < shape.size(0, axis); ++i) {
    const auto row = all.values<const float>().subspan((i * shape[axis] + index) * part, part);
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

/// The changed model computes for each of three samples what it computed for a batch of `old`
/// of that sample.
void expect_same_for_samples(const Model& original, std::int64_t old, int output_axis) {
  for (const std::optional<std::int64_t> batch : {std::optional<std::int64_t>(3), {}}) {
    Model changed = original.clone();
    edit::change_batch(changed, batch);
    verify(changed);
    std::vector<std::int64_t> dims = original.graph().inputs()[0]->known_shape().dims();
    dims[0] = 3;
    const Tensor three = numbers(Shape(dims), 5);
    const Tensor found = Session(changed).run({three}).at(0);
    ASSERT_EQ(found.shape()[output_axis], 3);
    for (std::int64_t i = 0; i < 3; ++i) {
      std::vector<float> copies;
      for (std::int64_t j = 0; j < old; ++j) {
        const std::vector<float> one = sample(three, 0, i);
        copies.insert(copies.end(), one.begin(), one.end());
      }
      dims[0] = old;
      const Tensor wanted = Session(original).run({Tensor::from(Shape(dims), copies)}).at(0);
      EXPECT_THAT(sample(found, output_axis, i),
                  testing::Pointwise(testing::FloatNear(1e-5F), sample(wanted, output_axis, 0)));
    }
  }
}

class ChangeBatch : public testing::TestWithParam<std::int64_t> {};

/// Multi-head attention over [T,B,D] as PyTorch's older exporter writes it: heads join the batch.
TEST_P(ChangeBatch, FollowsHeadsThatJoinTheBatch) {
  const std::int64_t batch = GetParam();
  Export e({batch, 2, 6});
  const Expr rows = transpose(e.x(), {1, 0, 2});
  const auto heads = [&](double seed) {
    const Expr y = matmul(rows, e.weight({6, 6}, seed));
    return transpose(e.shaped(y, {2, batch * 3, 2}), {1, 0, 2});
  };
  const Expr q = heads(1);
  const Expr k = heads(2);
  const Expr mixed = matmul(call("Softmax", {matmul(q, transpose(k, {0, 2, 1}))}), heads(3));
  const Expr joined = e.shaped(transpose(mixed, {1, 0, 2}), {2 * batch, 6});
  const Expr out = e.shaped(matmul(joined, e.weight({6, 6}, 4)), {2, batch, 6});
  expect_same_for_samples(e.with(out), batch, 1);
}

/// torch.export writes it in each Reshape: then a 0 in the target would be a size, not a copy.
TEST_P(ChangeBatch, FreesTargetsInWhichZeroIsASize) {
  const std::int64_t batch = GetParam();
  Export e({batch, 4, 3});
  const Expr y = call("Reshape", {e.x(), e.constant(ints({batch, 2, 6}))}, {{"allowzero", 1}});
  expect_same_for_samples(e.with(matmul(y, e.weight({6, 5}, 1))), batch, 0);
}

TEST_P(ChangeBatch, FreesRecurrentStates) {
  const std::int64_t batch = GetParam();
  Export e({batch, 4, 3});
  const Expr zeros = e.constant(Tensor::zeros(DType::f32, {1, batch, 2}));
  std::vector<float> rows;
  for (std::int64_t i = 0; i < batch; ++i) rows.insert(rows.end(), {0.25F, -0.5F});
  const Expr cell = e.constant(Tensor::from(Shape{1, batch, 2}, rows));
  const Expr steps = transpose(e.x(), {1, 0, 2});
  const auto outputs = call_multi(
      "LSTM", "",
      {steps, e.weight({1, 8, 3}, 1), e.weight({1, 8, 2}, 2), Expr(), Expr(), zeros, cell}, 3,
      {{"hidden_size", 2}});
  const Expr y = e.shaped(outputs[0], {4, batch, 2});
  expect_same_for_samples(e.with(y), batch, 1);
}

/// As PyTorch's older exporter writes the zeros that a GRU starts with: made for one batch, and
/// then expanded to what it computes from the input.
TEST_P(ChangeBatch, FreesWhatIsExpandedFromTheOldBatch) {
  const std::int64_t batch = GetParam();
  Export e({batch, 2});
  const Expr rows = e.constant(Tensor::full(DType::f32, {1, batch, 2}, 0.5));
  const Expr size = call("Gather", {call("Shape", {e.x()}), e.constant(ints({0}))});
  const Expr dims =
      call("Concat", {e.constant(ints({3})), size, e.constant(ints({2}))}, {{"axis", 0}});
  expect_same_for_samples(e.with(call("Expand", {rows, dims}) * e.x()), batch, 1);
}

/// A model whose caller keeps the recurrent state: [directions or layers,N,hidden].
TEST(ChangeBatch, FindsTheBatchOfStatesInTheirSecondAxis) {
  for (const Dim& batch : {Dim(1), Dim("batch"), Dim()}) {
    Export e({1, 3});
    Graph& graph = e.model.graph();
    graph.inputs()[0]->set_type({DType::f32, SymShape{batch, 3}});
    Value* const state = graph.add_input("state", {DType::f32, SymShape{2, batch, 3}});
    Model model = e.with(e.builder.expr(state) * e.x());
    edit::change_batch(model, 4);
    EXPECT_EQ(*model.graph().inputs()[0]->shape(), (SymShape{4, 3}));
    EXPECT_EQ(*model.graph().inputs()[1]->shape(), (SymShape{2, 4, 3}));
  }
}

TEST_P(ChangeBatch, RepeatsATokenForEachSample) {
  const std::int64_t batch = GetParam();
  for (const bool is_folded : {false, true}) {
    Export e({batch, 2, 3});
    const Tensor token = numbers({1, 1, 3}, 7);
    std::vector<float> rows;
    for (std::int64_t i = 0; i < batch; ++i) {
      const auto row = token.values<const float>();
      rows.insert(rows.end(), row.begin(), row.end());
    }
    const Expr expanded =
        is_folded ? e.constant(Tensor::from(Shape{batch, 1, 3}, rows))
                  : call("Expand", {e.constant(token), e.constant(ints({batch, 1, 3}))});
    expect_same_for_samples(e.with(call("Concat", {expanded, e.x()}, {{"axis", 1}})), batch, 0);
  }
}

TEST_P(ChangeBatch, FollowsShapesThatAreComputedInPart) {
  const std::int64_t batch = GetParam();
  Export e({batch, 4, 3});
  const Expr length = call("Gather", {call("Shape", {e.x()}), e.constant(ints({1}))});
  const Expr target =
      call("Concat", {e.constant(ints({batch})), length, e.constant(ints({3, 1}))}, {{"axis", 0}});
  expect_same_for_samples(e.with(call("Reshape", {e.x(), target})), batch, 0);
}

TEST_P(ChangeBatch, FreesSizesOfResizeAndExpand) {
  const std::int64_t batch = GetParam();
  Export e({batch, 1, 2, 2});
  const Expr large = call("Resize", {e.x(), Expr(), Expr(), e.constant(ints({batch, 1, 4, 4}))});
  const Expr wide = call("Expand", {large, e.constant(ints({batch, 3, 4, 4}))});
  expect_same_for_samples(e.with(wide), batch, 0);
}

INSTANTIATE_TEST_SUITE_P(Exported, ChangeBatch, testing::Values(1, 2));

/// The input's batch was declared open, but the exporter has computed one shape ahead.
TEST(ChangeBatch, FindsTheBatchInAFileThatSaysItIsOpen) {
  Export e({4, 6});
  const Expr heads = transpose(e.shaped(e.x(), {8, 3, 1}), {0, 2, 1});
  const Model closed = e.with(e.shaped(matmul(heads, e.weight({3, 3}, 1)), {4, 6}));
  Model open = closed.clone();
  open.graph().inputs()[0]->set_type({DType::f32, SymShape{Dim("N"), 6}});
  open.graph().outputs()[0]->set_type({DType::f32, SymShape{Dim("N"), 6}});
  const Tensor three = numbers({3, 6}, 5);
  for (const std::optional<std::int64_t> batch : {std::optional<std::int64_t>(3), {}}) {
    Model from_open = open.clone();
    edit::change_batch(from_open, batch);
    verify(from_open);
    Model from_closed = closed.clone();
    edit::change_batch(from_closed, batch);
    EXPECT_TRUE(
        equal_bits(Session(from_open).run({three}).at(0), Session(from_closed).run({three}).at(0)));
  }
}

TEST(ChangeBatchRefuses, ABatchThatAnOpenModelDoesNotTake) {
  Export e({4, 6});
  Model model = e.with(e.shaped(e.x(), {-1, 4}));  // any even number of samples
  model.graph().inputs()[0]->set_type({DType::f32, SymShape{Dim("N"), 6}});
  EXPECT_THAT(error_of([&] { edit::change_batch(model, 3); }).what(),
              HasSubstr("set_batch: the model does not take a batch of 3: Reshape node"));
  edit::change_batch(model, 2);
  EXPECT_EQ(Session(model).run({numbers({2, 6}, 1)}).at(0).shape(), Shape({3, 4}));
}

TEST(ChangeBatchRefuses, WhatMixesSamples) {
  Export e({2, 3});
  const Model model = e.with(matmul(e.weight({4, 2}, 1), e.x()));
  Model changed = model.clone();
  const Error error = error_of([&] { edit::change_batch(changed, 5); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("the batch 2 of the export is part of the model: MatMul"));
  EXPECT_EQ(changed.graph().inputs()[0]->known_shape(), Shape({2, 3}));
  EXPECT_EQ(error_of([&] { edit::change_batch(changed, 0); }).kind(), ErrorKind::argument);
}

/// my.with_token(x) = Concat(token, x).
Function with_token() {
  Function function{.domain = "my", .name = "with_token"};
  function.opset_imports = {{"", 17}};
  function.body = std::make_unique<Graph>("with_token");
  Graph& body = *function.body;
  Value* const x = body.add_input("x", {});
  Node* const token =
      body.add_node("Constant", "", {}, {"token"}, {{"value", numbers({1, 1, 3}, 7)}});
  body.add_output(
      body.add_node("Concat", "", {token->output(), x}, {"y"}, {{"axis", 1}})->output());
  return function;
}

TEST(ChangeBatchRefuses, WhatAFunctionOfTheFileBakes) {
  Export e({1, 2, 3});
  Graph& graph = e.model.graph();
  e.model.set_opset("my", 1);
  e.model.functions.push_back(with_token());
  graph.add_output(graph.add_node("with_token", "my", {graph.find("x")}, {"y"})->output());
  const Error error = error_of([&] { edit::change_batch(e.model, 5); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("made for a batch of 1"));
  EXPECT_EQ(graph.inputs()[0]->known_shape(), Shape({1, 2, 3}));
}

TEST(ChangeBatchRefuses, ABatchOfWhichThereCanBeNoLarger) {
  Export e({std::int64_t{1} << 61, 1});
  Model model = e.with(e.shaped(e.x(), {std::int64_t{1} << 61, 1, 1}));
  EXPECT_EQ(error_of([&] { edit::change_batch(model, 5); }).kind(), ErrorKind::shape);
}

TEST(ChangeBatchRefuses, OutputsWithoutABatch) {
  Export e({1, 3});
  Model model = e.with(reduce_mean(e.x(), {}, false));
  EXPECT_THAT(error_of([&] { edit::change_batch(model, 5); }).what(),
              HasSubstr("no output would have the batch"));
}

std::string behind(const Shape& from, const BatchAxis& axis, const Shape& to, std::int64_t batch,
                   const std::vector<std::int64_t>& target = {}) {
  const auto found = edit::reshaped_batch_axis(from, axis, to, batch, target);
  return found ? text(found->axis, " outer ", found->outer) : "none";
}

TEST(ReshapedBatchAxis, IsWhereTheElementsOfASampleAre) {
  EXPECT_EQ(behind({7, 2, 3}, {0, 1}, {14, 3}, 7), "0 outer 1");
  EXPECT_EQ(behind({2, 7, 3}, {1, 1}, {14, 3}, 7), "0 outer 2");
  EXPECT_EQ(behind({14, 3}, {0, 2}, {2, 7, 3}, 7), "1 outer 1");
  EXPECT_EQ(behind({2, 7, 6}, {1, 1}, {2, 21, 2}, 7), "1 outer 1");
  EXPECT_EQ(behind({2, 7, 3}, {1, 1}, {7, 6}, 7), "none");
  EXPECT_EQ(behind({0, 7, 3}, {1, 1}, {0, 21}, 7), "none") << "no elements are anywhere";
}

/// Of the axes that may hold a batch of 1.
TEST(ReshapedBatchAxis, OfOneIsTheUsualOne) {
  EXPECT_EQ(behind({1, 5, 4}, {0, 1}, {1, 20}, 1), "0 outer 1");
  EXPECT_EQ(behind({5, 1, 4}, {1, 1}, {5, 4}, 1), "0 outer 5") << "samples beside their rows";
  EXPECT_EQ(behind({5, 1, 2, 2}, {1, 1}, {5, 4}, 1), "0 outer 5");
  EXPECT_EQ(behind({5, 1, 4}, {1, 1}, {5, 2, 2}, 1), "1 outer 1") << "heads beside samples";
  EXPECT_EQ(behind({1, 4}, {0, 1}, {1, 1, 4}, 1, {1, -1, 4}), "1 outer 1");
  EXPECT_EQ(behind({1, 4}, {0, 1}, {1, 1, 4}, 1), "0 outer 1");
}

TEST(OneOfEqual, IsThePartThatIsRepeated) {
  const Tensor rows = Tensor::from<float>({2, 2, 1}, {1, 1, 2, 2});
  const Tensor one = edit::one_of_equal(rows, 1);
  EXPECT_EQ(one.shape(), Shape({2, 1, 1}));
  EXPECT_THAT(one.values<const float>(), testing::ElementsAre(1, 2));
  EXPECT_FALSE(edit::one_of_equal(rows, 0).defined());
  EXPECT_FALSE(edit::one_of_equal(Tensor::from_strings({2}, {"a", "b"}), 0).defined());
  const Tensor packed = Tensor::from_bytes(DType::i4, {3, 3}, "\0\0\0\0", 5);
  EXPECT_FALSE(edit::one_of_equal(packed, 0).defined());
}

}  // namespace
}  // namespace graft
