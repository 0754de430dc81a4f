#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_old_op;
using testing::call_op;

/// The inferred shape of one op on an input of a symbolic shape and a constant list.
std::optional<SymShape> inferred(std::string_view op, const SymShape& shape,
                                 const std::vector<std::int64_t>& list,
                                 const Attributes& attributes = {}) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, shape});
  Value* const ints =
      builder.constant(Tensor::from({static_cast<std::int64_t>(list.size())}, list));
  return builder.node(op, "", {x, ints}, 1, attributes)->output()->shape();
}

const Dim kBatch("N");

TEST(Reshape, KeepsANamedDim) {
  EXPECT_EQ(*inferred("Reshape", {kBatch, 2, 3}, {0, -1}), (SymShape{kBatch, 6}));
  EXPECT_EQ(*inferred("Reshape", {kBatch, 2, 3}, {-1, 6}), (SymShape{kBatch, 6}));
  EXPECT_EQ(*inferred("Reshape", {kBatch, 2, 3}, {-1, 3}), (SymShape{Dim(), 3}));
  EXPECT_EQ(*inferred("Reshape", {kBatch, Dim("T"), 6}, {0, 0, 2, -1}),
            (SymShape{kBatch, Dim("T"), 2, 3}));
  EXPECT_EQ(*inferred("Reshape", {Dim(), 2, 3}, {0, -1}), (SymShape{Dim(), 6}));
}

TEST(Reshape, UnknownTargetOfKnownLengthHasARank) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2, 3}});
  Value* const target = graph.add_input("shape", {DType::i64, SymShape{3}});
  EXPECT_EQ(*builder.node("Reshape", "", {x, target}, 1)->output()->shape(),
            (SymShape{Dim(), Dim(), Dim()}));
}

TEST(Reshape, TargetsLongerThanAnyShapeAreRefused) {
  Graph graph;
  Builder builder(graph);
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2, 3}});
  Value* const target = graph.add_input("shape", {DType::i64, SymShape{std::int64_t{1} << 40}});
  for (const char* op : {"Reshape", "Expand", "Unsqueeze"}) {
    EXPECT_EQ(kind_of([&] { builder.node(op, "", {x, target}, 1); }), ErrorKind::unsupported) << op;
  }
  Value* const longest = graph.add_input("longest", {DType::i64, SymShape{INT64_MAX}});
  EXPECT_EQ(kind_of([&] { builder.node("Unsqueeze", "", {x, longest}, 1); }), ErrorKind::shape);
}

TEST(Reshape, ZeroCopiesOrIsZero) {
  EXPECT_EQ(*inferred("Reshape", {0, 3}, {3, 0}, {{"allowzero", 1}}), (SymShape{3, 0}));
  EXPECT_EQ(*inferred("Reshape", {2, 3, 4}, {0, 12}), (SymShape{2, 12}));
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  const auto kind = [](const SymShape& shape, const std::vector<std::int64_t>& list,
                       const Attributes& attributes = {}) {
    return kind_of([&] { inferred("Reshape", shape, list, attributes); });
  };
  EXPECT_EQ(kind({2, 3}, {4}), ErrorKind::shape);
  EXPECT_EQ(kind({2, 3}, {4, -1}), ErrorKind::shape);
  EXPECT_EQ(kind({2, 3}, {-1, -1}), ErrorKind::shape);
  EXPECT_EQ(kind({2, 3}, {-2, 3}), ErrorKind::shape);
  EXPECT_EQ(kind({2, 3}, {6, 1, 0}), ErrorKind::shape);
  EXPECT_EQ(kind({0, 3}, {0, -1}, {{"allowzero", 1}}), ErrorKind::shape);
  EXPECT_EQ(kind({2, 3}, {INT64_MAX, INT64_MAX}), ErrorKind::shape);
}

TEST(Flatten, SplitsAtTheAxis) {
  const Tensor x = Tensor::zeros(DType::f32, {2, 3, 4});
  EXPECT_EQ(call_op("Flatten", {x})[0].shape(), Shape({2, 12}));
  EXPECT_EQ(call_op("Flatten", {x}, {{"axis", -1}})[0].shape(), Shape({6, 4}));
  EXPECT_EQ(call_op("Flatten", {x}, {{"axis", 3}})[0].shape(), Shape({24, 1}));
  EXPECT_EQ(call_op("Flatten", {x}, {{"axis", 0}})[0].shape(), Shape({1, 24}));
  EXPECT_EQ(kind_of([&] { call_op("Flatten", {x}, {{"axis", 4}}); }), ErrorKind::shape);
}

TEST(Squeeze, OnlyOnes) {
  EXPECT_EQ(*inferred("Squeeze", {1, kBatch, 1}, {-1}), (SymShape{1, kBatch}));
  EXPECT_EQ(kind_of([] { inferred("Squeeze", {2, 1}, {0}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { inferred("Squeeze", {2, 1}, {2}); }), ErrorKind::shape);
}

TEST(Unsqueeze, AxesCountInTheResult) {
  EXPECT_EQ(*inferred("Unsqueeze", {kBatch, 3}, {1, -1}), (SymShape{kBatch, 1, 3, 1}));
  EXPECT_EQ(kind_of([] { inferred("Unsqueeze", {2}, {0, -3}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { inferred("Unsqueeze", {2}, {5}); }), ErrorKind::shape);
}

TEST(Squeeze, TakesAxesAsAttributeBefore13) {
  const Tensor x = Tensor::zeros(DType::f32, {1, 3, 1});
  const std::vector<std::int64_t> axes{0};
  EXPECT_EQ(call_old_op("Squeeze", 11, {x}, {{"axes", axes}}).shape(), Shape({3, 1}));
  EXPECT_EQ(call_old_op("Unsqueeze", 11, {x}, {{"axes", axes}}).shape(), Shape({1, 1, 3, 1}));
}

}  // namespace
}  // namespace graft
