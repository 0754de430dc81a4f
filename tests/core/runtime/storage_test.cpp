#include "core/runtime/storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

class StorageTest : public testing::Test {
 protected:
  StorageTest() : builder_(graph_) {
    x_ = builder_.expr(graph_.add_input("x", {DType::f32, SymShape{2, 3}}));
  }
  int index(const StorageMap& map, const Expr& value) { return map.of_value[*value.value()]; }

  Graph graph_;
  Builder builder_;
  Expr x_;
};

TEST_F(StorageTest, AViewHasItsInputsMemory) {
  const Expr h = exp(x_);
  const Expr flat = reshape(h, {6});
  graph_.add_output(flat.value());
  const StorageMap map = assign_storage(graph_);
  EXPECT_EQ(index(map, h), index(map, flat));
  EXPECT_EQ(kernel_nodes(graph_).size(), 1U) << "no kernel runs for the view";
  EXPECT_EQ(map[flat.value()].last, 1) << "an output lives to the end";
}

TEST_F(StorageTest, OverwritesAnInputThatNobodyReadsLater) {
  const Expr a = exp(x_);
  const Expr b = exp(a);
  const Expr c = b + a;  // a is read again, so b cannot have overwritten it
  graph_.add_output(c.value());
  const StorageMap map = assign_storage(graph_);
  EXPECT_NE(index(map, a), index(map, x_)) << "the caller's tensor stays as it is";
  EXPECT_NE(index(map, a), index(map, b));
  EXPECT_EQ(index(map, c), index(map, b)) << "b dies in the addition";
}

TEST_F(StorageTest, NeverOverwritesOutputsOrParameters) {
  const Expr w = builder_.expr(graph_.add_initializer("w", Tensor::zeros(DType::f32, {2, 3})));
  const Expr a = exp(x_);
  const Expr b = exp(a);
  const Expr c = exp(w);
  for (const Expr& output : {a, b, c}) graph_.add_output(output.value());
  const StorageMap map = assign_storage(graph_);
  EXPECT_NE(index(map, a), index(map, b));
  EXPECT_NE(index(map, c), index(map, w));
  EXPECT_EQ(map[w.value()].place, Storage::Place::initializer);
  EXPECT_EQ(map[x_.value()].place, Storage::Place::input);
}

/// A view keeps its source alive: exp must not overwrite what the view still shows.
TEST_F(StorageTest, AViewThatIsReadLaterKeepsItsSource) {
  const Expr a = exp(x_);
  const Expr view = reshape(a, {3, 2});
  const Expr b = exp(a);
  const Expr c = exp(view);
  for (const Expr& output : {b, c}) graph_.add_output(output.value());
  const StorageMap map = assign_storage(graph_);
  EXPECT_NE(index(map, b), index(map, a));
}

TEST_F(StorageTest, AnUpdateWritesIntoItsVariable) {
  Value* const state = graph_.add_initializer("state", Tensor::zeros(DType::f32, {2, 3}));
  const Expr updated = call_internal("Assign", {builder_.expr(state), x_});
  graph_.add_output(exp(x_).value());
  const StorageMap map = assign_storage(graph_);
  EXPECT_EQ(index(map, updated), map.of_value[*state]);
}

TEST_F(StorageTest, AVariableReadAfterItsUpdateIsRefused) {
  Value* const state = graph_.add_initializer("state", Tensor::zeros(DType::f32, {2, 3}));
  call_internal("Assign", {builder_.expr(state), x_});
  graph_.add_output(exp(builder_.expr(state)).value());
  EXPECT_THAT(error_of([&] { assign_storage(graph_); }).what(),
              testing::HasSubstr("variable 'state' is read after its update"));
}

}  // namespace
}  // namespace graft
