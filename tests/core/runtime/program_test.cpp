#include "core/runtime/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/runtime/session.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::ElementsAre;

ValueType list() {
  return {DType::f32, SymShape{Dim("N")}};
}

std::vector<float> floats(const Datum& datum) {
  const auto values = datum.tensor().values<const float>();
  return {values.begin(), values.end()};
}

/// y = 2 * (x's elements that are not 0): a plan, NonZero, and a plan for each number of them.
std::unique_ptr<Graph> compacting() {
  auto graph = std::make_unique<Graph>();
  Value* const x = graph->add_input("x", list());
  Value* const twice = graph->add_node("Add", "", {x, x}, {"twice"})->output();
  Value* const at = graph->add_node("NonZero", "", {x}, {"at"})->output();
  Value* const axis = graph->add_initializer("axis", Tensor::from<std::int64_t>({1}, {0}));
  Value* const flat = graph->add_node("Squeeze", "", {at, axis}, {"flat"})->output();
  graph->add_output(graph->add_node("Gather", "", {twice, flat}, {"y"})->output());
  return graph;
}

TEST(Program, PlansWhatFollowsOnceShapesAreKnown) {
  Program program(compacting());
  const auto run = [&](std::vector<float> x) {
    const auto size = static_cast<std::int64_t>(x.size());
    const std::vector<Datum> inputs{Tensor::from({size}, x)};
    return floats(program.run(inputs).front());
  };
  EXPECT_THAT(run({0, 1, 2}), ElementsAre(2, 4));
  EXPECT_THAT(run({3, 0, 0}), ElementsAre(6));
  EXPECT_THAT(run({0, 5, 6}), ElementsAre(10, 12));
  EXPECT_THAT(run({0, 0}), ElementsAre());
}

/// More shapes than are kept.
TEST(Program, ForgetsOldShapes) {
  Program program(compacting());
  for (std::int64_t size = 1; size < 100; ++size) {
    const std::vector<Datum> inputs{Tensor::full(DType::f32, {size}, 1.0)};
    EXPECT_EQ(program.run(inputs).front().tensor().size(), size);
  }
}

TEST(Program, TakesShapesAsInputs) {
  auto owned = std::make_unique<Graph>();
  Value* const x = owned->add_input("x", list());
  Value* const shape = owned->add_input("shape", {DType::i64, SymShape{Dim()}});
  Value* const reshaped = owned->add_node("Reshape", "", {x, shape}, {"reshaped"})->output();
  owned->add_output(owned->add_node("Neg", "", {reshaped}, {"y"})->output());
  Program program(std::move(owned));
  const std::vector<Datum> inputs{Tensor::from<float>({4}, {1, 2, 3, 4}),
                                  Tensor::from<std::int64_t>({2}, {2, -1})};
  const Tensor y = program.run(inputs).front().tensor();
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_THAT(floats(y), ElementsAre(-1, -2, -3, -4));
}

/// What a run returns is not overwritten by the next.
TEST(Program, ResultsStay) {
  Program program(compacting());
  const std::vector<Datum> first{Tensor::from<float>({2}, {1, 2})};
  const std::vector<Datum> second{Tensor::from<float>({2}, {3, 4})};
  const Datum kept = program.run(first).front();
  program.run(second);
  EXPECT_THAT(floats(kept), ElementsAre(2, 4));
}

TEST(Program, InputsThatAreOutputsAreCopied) {
  auto graph = std::make_unique<Graph>();
  graph->add_output(graph->add_input("x", list()));
  Program program(std::move(graph));
  const Tensor x = Tensor::from<float>({1}, {1});
  const std::vector<Datum> inputs{x};
  const Datum y = program.run(inputs).front();
  x.values<float>()[0] = 9;
  EXPECT_THAT(floats(y), ElementsAre(1));
}

TEST(Program, RefusesInputsThatDoNotFit) {
  Program program(compacting());
  const std::vector<Datum> inputs{Tensor::scalar<std::int64_t>(1)};
  EXPECT_EQ(error_of([&] { program.run(inputs); }).kind(), ErrorKind::type);
}

/// CenterCropPad has no kernel of its own; its target size comes with the data.
TEST(Program, CallsCompositeOpsByTheirParts) {
  auto graph = std::make_unique<Graph>();
  Value* const x = graph->add_input("x", list());
  Value* const size = graph->add_input("size", {DType::i64, SymShape{1}});
  graph->add_output(graph->add_node("CenterCropPad", "", {x, size}, {"y"})->output());
  Program program(std::move(graph));
  const std::vector<Datum> inputs{Tensor::from<float>({4}, {1, 2, 3, 4}),
                                  Tensor::from<std::int64_t>({1}, {2})};
  EXPECT_THAT(floats(program.run(inputs).front()), ElementsAre(2, 3));
}

}  // namespace
}  // namespace graft
