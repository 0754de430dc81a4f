#include "core/runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/ops/builder.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// y = x * transpose(w) with w [1,2]: the transpose can be folded.
Model make_model() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 2}}));
  const Expr w = builder.expr(graph.add_initializer("w", Tensor::from<float>({1, 2}, {2, 3})));
  graph.add_output(matmul(x, transpose(w, {1, 0})).value());
  return model;
}

float value_of(Session& session, const Tensor& x) {
  return session.run({{"x", x}}).front().values<const float>()[0];
}

TEST(Session, PlansForEachShape) {
  Session session(make_model());
  EXPECT_THAT(session.input_names(), ElementsAre("x"));
  EXPECT_EQ(value_of(session, Tensor::from<float>({1, 2}, {1, 1})), 5);
  const auto three = session.run({Tensor::from<float>({3, 2}, {1, 0, 0, 1, 1, 1})});
  EXPECT_THAT(three.front().values<const float>(), ElementsAre(2, 3, 5));
  EXPECT_EQ(value_of(session, Tensor::from<float>({1, 2}, {2, 2})), 10);
}

TEST(Session, TakesTwoTensorsInBraces) {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const a = graph.add_input("a", {DType::f32, SymShape{1}});
  Value* const b = graph.add_input("b", {DType::f32, SymShape{1}});
  graph.add_output(graph.add_node("Sub", "", {a, b}, {"y"})->output());
  Session session(model);
  const auto y = session.run({Tensor::full(DType::f32, {1}, 3), Tensor::full(DType::f32, {1}, 1)});
  EXPECT_EQ(y.front().values<const float>()[0], 2.0F);
}

TEST(Session, SeesChangedWeightsWhenTold) {
  const Model model = make_model();
  Session fixed(model);
  Session changing(model, {.weights_change = true});
  const Tensor x = Tensor::from<float>({1, 2}, {1, 1});
  EXPECT_EQ(value_of(fixed, x), 5);
  EXPECT_EQ(value_of(changing, x), 5);
  model.graph().find("w")->initializer().copy_from(Tensor::from<float>({1, 2}, {7, 7}));
  EXPECT_EQ(value_of(fixed, x), 5) << "folded when the plan was made";
  EXPECT_EQ(value_of(changing, x), 14);
}

/// A convolution whose kernel wants its weight in a layout of its own.
Model convolution_model() {
  Model model;
  model.set_opset("", 17);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{1, 32, Dim("height"), 8}});
  Value* const w = graph.add_initializer("w", Tensor::full(DType::f32, {48, 32, 3, 3}, 1));
  graph.add_output(graph.add_node("Conv", "", {x, w}, {"y"})->output());
  return model;
}

TEST(Session, ALaterOneSeesWeightsThatHaveChanged) {
  const Model model = convolution_model();
  Session before(model);
  const auto first_of = [](Session& session, std::int64_t height) {
    const Tensor x = Tensor::full(DType::f32, {1, 32, height, 8}, 1);
    return session.run({x}).front().values<const float>()[0];
  };
  EXPECT_EQ(first_of(before, 8), 288);
  model.graph().find("w")->initializer().copy_from(Tensor::full(DType::f32, {48, 32, 3, 3}, 2));
  Session after(model);
  EXPECT_EQ(first_of(after, 8), 576);
  EXPECT_EQ(first_of(after, 6), 576);
}

TEST(Session, ServesSeveralThreads) {
  Session session(make_model());
  const auto work = [&](float factor) {
    for (int i = 0; i < 50; ++i) {
      const auto rows = 1 + i % 3;
      const Tensor x = Tensor::full(DType::f32, {rows, 2}, factor);
      EXPECT_EQ(session.run({x}).front().values<const float>()[0], 5 * factor);
    }
  };
  std::thread first(work, 1.0F);
  std::thread second(work, 2.0F);
  first.join();
  second.join();
}

TEST(Session, GivesAnyValueInPlaceOfTheOutputs) {
  const Model model = make_model();
  const std::string inner = model.graph().outputs().front()->producer()->input(1)->name();
  const std::string last = model.graph().outputs().front()->name();
  Session session(model, {.outputs = {last, inner, "x", "w"}});
  EXPECT_THAT(session.output_names(), ElementsAre(last, inner, "x", "w"));
  const auto values = session.run({Tensor::from<float>({1, 2}, {1, 4})});
  ASSERT_EQ(values.size(), 4U);
  EXPECT_THAT(values[0].values<const float>(), ElementsAre(14));
  EXPECT_EQ(values[1].shape(), Shape({2, 1}));
  EXPECT_THAT(values[1].values<const float>(), ElementsAre(2, 3));
  EXPECT_THAT(values[2].values<const float>(), ElementsAre(1, 4));
  EXPECT_THAT(values[3].values<const float>(), ElementsAre(2, 3));
  EXPECT_EQ(Session(model).output_names().size(), 1U) << "the model has the outputs that it had";
  EXPECT_THAT(error_of([&] { Session(model, {.outputs = {"ww"}}); }).what(),
              HasSubstr("session: no value or node is named 'ww'"));
}

TEST(Session, SetsWeightsForRunsOfAllKinds) {
  const Model model = make_model();
  Session session(model, {.weights_change = true});
  const Tensor x = Tensor::from<float>({1, 2}, {1, 1});
  BoundRun bound = session.bind({x});
  EXPECT_EQ(value_of(session, x), 5);
  session.set_weights({{"w", Tensor::from<float>({1, 2}, {7, 1})}});
  bound.run();
  EXPECT_EQ(bound.outputs().front().values<const float>()[0], 8);
  EXPECT_EQ(value_of(session, x), 8);
  EXPECT_EQ(model.graph().find("w")->initializer().values<const float>()[0], 7);

  const auto fails = [&](const std::string& name, const Tensor& tensor) {
    return std::string(error_of([&] { session.set_weights({{name, tensor}}); }).what());
  };
  EXPECT_THAT(fails("v", x), HasSubstr("'v' is no weight that may change"));
  EXPECT_THAT(fails("w", Tensor::zeros(DType::f32, {2, 1})),
              HasSubstr("weight 'w' is f32[1,2], got f32[2,1]"));
  Session fixed(model);
  EXPECT_THAT(error_of([&] {
                fixed.set_weights({{"w", x}});
              }).what(),
              HasSubstr("SessionOptions::weights_change"));
}

/// The scales of a Resize lie in the model as weights do.
TEST(Session, RunsThatResizeAreBoundWhereWeightsChange) {
  Model model;
  model.set_opset("", 19);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{1, 1, 2, 2}});
  Value* const scales = graph.add_initializer("scales", Tensor::from<float>({4}, {1, 1, 2, 2}));
  graph.add_output(graph.add_node("Resize", "", {x, nullptr, scales}, {"y"})->output());
  Session session(model, {.weights_change = true});
  BoundRun bound = session.bind({Tensor::zeros(DType::f32, {1, 1, 2, 2})});
  EXPECT_EQ(bound.outputs().front().shape(), Shape({1, 1, 4, 4}));
  EXPECT_THROW(session.set_weights({{"scales", Tensor::zeros(DType::f32, {4})}}), Error);
}

TEST(Session, WantsADevice) {
  EXPECT_EQ(kind_of([] { Session(make_model(), {.device = nullptr}); }), ErrorKind::argument);
}

TEST(Session, WhatDoesNotFitIsNamed) {
  Session session(make_model());
  const Tensor x = Tensor::zeros(DType::f32, {1, 2});
  const auto fails = [&](const std::map<std::string, Tensor>& inputs) {
    return std::string(error_of([&] { session.run(inputs); }).what());
  };
  EXPECT_THAT(fails({{"z", x}}), HasSubstr("no input 'z'; its inputs: 'x'"));
  EXPECT_THAT(fails({}), HasSubstr("no tensor for input 'x'"));
  EXPECT_THAT(fails({{"x", Tensor::zeros(DType::f32, {1, 3})}}),
              HasSubstr("input 'x' is f32[N,2], got f32[1,3]"));
}

}  // namespace
}  // namespace graft
