#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/runtime/session.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ValueType list() {
  return {DType::f32, SymShape{Dim("N")}};
}

Model empty_model() {
  Model model;
  model.set_opset("", 21);
  return model;
}

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<const float>();
  return {values.begin(), values.end()};
}

Tensor three() {
  return Tensor::from<float>({3}, {1, 2, 3});
}

std::vector<Tensor> run(Session& session, const std::vector<Tensor>& inputs) {
  return session.run(inputs);
}

/// y = flag ? x + x : x[:1]: branches of different shapes, both reading x from outside.
Model branching() {
  Model model = empty_model();
  Graph& graph = model.graph();
  Value* const flag = graph.add_input("flag", {DType::boolean, SymShape{}});
  Value* const x = graph.add_input("x", list());
  auto sum = std::make_shared<Graph>("sum", &graph);
  sum->add_output(sum->add_node("Add", "", {x, x}, {"sum"})->output());
  auto first = std::make_shared<Graph>("first", &graph);
  const auto ints = [&](const char* name, std::int64_t value) {
    return first->add_initializer(name, Tensor::from({1}, {value}));
  };
  first->add_output(
      first->add_node("Slice", "", {x, ints("start", 0), ints("end", 1)}, {"head"})->output());
  Node* const node = graph.add_node(
      "If", "", {flag}, {"y"},
      {{"then_branch", AttributeValue(sum)}, {"else_branch", AttributeValue(first)}});
  Node* const after = graph.add_node("Neg", "", {node->output()}, {"z"});
  graph.add_output(after->output());
  return model;
}

TEST(ControlFlow, IfRunsTheBranchThatItsConditionChooses) {
  Session session(branching());
  EXPECT_THAT(floats(run(session, {Tensor::scalar(true), three()}).front()),
              ElementsAre(-2, -4, -6));
  EXPECT_THAT(floats(run(session, {Tensor::scalar(false), three()}).front()), ElementsAre(-1));
}

/// Doubles x until its sum is over a limit; collects each state. Returns the last and all.
Model doubling(const SymShape& most_shape = {}) {
  Model model = empty_model();
  Graph& graph = model.graph();
  Value* const most = graph.add_input("most", {DType::i64, most_shape});
  Value* const x = graph.add_input("x", list());
  Value* const limit = graph.add_initializer("limit", Tensor::scalar(20.0F));
  auto body = std::make_shared<Graph>("body", &graph);
  body->add_input("turn", {DType::i64, SymShape{}});
  body->add_input("go", {DType::boolean, SymShape{}});
  Value* const state = body->add_input("state", {DType::f32, std::nullopt});
  Value* const twice = body->add_node("Add", "", {state, state}, {"twice"})->output();
  Value* const sum = body->add_node("ReduceSum", "", {twice}, {"sum"}, {{"keepdims", 0}})->output();
  body->add_output(body->add_node("Less", "", {sum, limit}, {"go_on"})->output());
  body->add_output(twice);
  body->add_output(twice);
  Node* const loop = graph.add_node("Loop", "", {most, nullptr, x}, {"last", "all"},
                                    {{"body", AttributeValue(body)}});
  graph.add_output(loop->output(0));
  graph.add_output(loop->output(1));
  return model;
}

TEST(ControlFlow, LoopsEndByTheirCondition) {
  Session session(doubling());
  const auto results = run(session, {Tensor::scalar<std::int64_t>(10), three()});
  EXPECT_THAT(floats(results[0]), ElementsAre(4, 8, 12));
  EXPECT_EQ(results[1].shape(), (Shape{2, 3}));
  EXPECT_THAT(floats(results[1]), ElementsAre(2, 4, 6, 4, 8, 12));
}

TEST(ControlFlow, LoopsEndByTheirTripCount) {
  Session session(doubling());
  const auto results = run(session, {Tensor::scalar<std::int64_t>(1), three()});
  EXPECT_THAT(floats(results[0]), ElementsAre(2, 4, 6));
  EXPECT_EQ(results[1].shape(), (Shape{1, 3}));
}

TEST(ControlFlow, ATripCountIsOneNumber) {
  for (const std::int64_t count : {0, 2}) {
    Session session(doubling(SymShape{count}));
    const Tensor most = Tensor::full(DType::i64, {count}, 1);
    const Error error = error_of([&] { run(session, {most, three()}); });
    EXPECT_EQ(error.kind(), ErrorKind::shape);
    EXPECT_THAT(error.what(), HasSubstr("the trip count is i64"));
  }
}

TEST(ControlFlow, LoopsWithoutATurnCollectNothing) {
  Session session(doubling());
  const Error error = error_of([&] { run(session, {Tensor::scalar<std::int64_t>(0), three()}); });
  EXPECT_THAT(error.what(), HasSubstr("made no turn"));
}

TEST(ControlFlow, ABodyHasAnOutputForEachOfTheNode) {
  Model model = doubling();
  Graph& body = *std::get<std::shared_ptr<Graph>>(
      model.graph().nodes().front()->attributes.find("body")->value);
  body.set_outputs({body.outputs()[0], body.outputs()[1]});
  const Error error = error_of([&] {
    Session session(model);
    run(session, {Tensor::scalar<std::int64_t>(1), three()});
  });
  EXPECT_EQ(error.kind(), ErrorKind::model);
  EXPECT_THAT(error.what(), HasSubstr("its body has"));
}

/// Nothing could end it.
TEST(ControlFlow, EndlessLoopsAreRefused) {
  Model model = empty_model();
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", list());
  auto body = std::make_shared<Graph>("body", &graph);
  body->add_input("turn", {DType::i64, SymShape{}});
  Value* const go = body->add_input("go", {DType::boolean, SymShape{}});
  Value* const state = body->add_input("state", {DType::f32, std::nullopt});
  body->add_output(go);
  body->add_output(state);
  Node* const loop =
      graph.add_node("Loop", "", {nullptr, nullptr, x}, {"last"}, {{"body", AttributeValue(body)}});
  graph.add_output(loop->output());
  Session session(model);
  EXPECT_EQ(error_of([&] { run(session, {three()}); }).kind(), ErrorKind::unsupported);
}

/// Sums the columns of x [2,3] from the last to the first; the bias is read from outside.
TEST(ControlFlow, ScansFollowAxesAndDirections) {
  Model model = empty_model();
  Graph& graph = model.graph();
  Value* const start = graph.add_input("start", {DType::f32, SymShape{2}});
  Value* const x = graph.add_input("x", {DType::f32, SymShape{2, Dim("N")}});
  Value* const bias = graph.add_input("bias", {DType::f32, SymShape{}});
  auto body = std::make_shared<Graph>("body", &graph);
  Value* const state = body->add_input("state", {DType::f32, std::nullopt});
  Value* const one = body->add_input("one", {DType::f32, std::nullopt});
  Value* const sum = body->add_node("Add", "", {state, one}, {"sum"})->output();
  Value* const biased = body->add_node("Add", "", {sum, bias}, {"biased"})->output();
  body->add_output(biased);
  body->add_output(biased);
  Node* const scan = graph.add_node("Scan", "", {start, x}, {"total", "sums"},
                                    {{"body", AttributeValue(body)},
                                     {"num_scan_inputs", 1},
                                     {"scan_input_axes", std::vector<std::int64_t>{-1}},
                                     {"scan_input_directions", std::vector<std::int64_t>{1}},
                                     {"scan_output_axes", std::vector<std::int64_t>{1}}});
  graph.add_output(scan->output(0));
  graph.add_output(scan->output(1));
  Session session(model);
  const auto results =
      run(session, {Tensor::zeros(DType::f32, {2}), Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                    Tensor::scalar(10.0F)});
  EXPECT_THAT(floats(results[0]), ElementsAre(36, 45));
  EXPECT_THAT(floats(results[1]), ElementsAre(13, 25, 36, 16, 31, 45));
}

/// The body's inputs have the shapes of a batch of one, as a file may say; the run is of two.
TEST(ControlFlow, WhatABodyDeclaresIsNotTakenForWhatItGets) {
  const auto model = [](bool is_scan, bool is_state_stale) {
    Model made = empty_model();
    Graph& graph = made.graph();
    Value* const start = graph.add_input("start", {DType::f32, SymShape{Dim("N"), 3}});
    Value* const x = graph.add_input("x", {DType::f32, SymShape{4, Dim("N"), 3}});
    auto body = std::make_shared<Graph>("body", &graph);
    if (!is_scan) {
      body->add_input("i", {DType::i64, SymShape{}});
      body->add_output(body->add_input("goes_on", {DType::boolean, SymShape{}}));
    }
    const SymShape stale{1, 3};
    const SymShape state_shape = is_state_stale ? stale : SymShape{Dim("N"), 3};
    Value* const state = body->add_input("state", {DType::f32, state_shape});
    Value* const one = is_scan ? body->add_input("one", {DType::f32, stale}) : state;
    Value* const sum = body->add_node("Add", "", {state, one}, {"sum"})->output();
    body->add_output(sum);
    body->add_output(sum);
    Node* node = nullptr;
    if (is_scan) {
      node = graph.add_node("Scan", "", {start, x}, {"last", "all"},
                            {{"body", AttributeValue(body)}, {"num_scan_inputs", 1}});
    } else {
      Value* const turns = graph.add_initializer("turns", Tensor::scalar<std::int64_t>(4));
      node = graph.add_node("Loop", "", {turns, nullptr, start}, {"last", "all"},
                            {{"body", AttributeValue(body)}});
    }
    graph.add_output(node->output(1));
    graph.add_output(graph.add_node("Shape", "", {node->output(1)}, {"shape"})->output());
    graph.add_output(
        graph.add_node("Concat", "", {node->output(1), x}, {"both"}, {{"axis", 0}})->output());
    return made;
  };
  for (const bool is_scan : {true, false}) {
    for (const bool is_state_stale : {true, false}) {
      Session session(model(is_scan, is_state_stale));
      const auto results =
          run(session, {Tensor::full(DType::f32, {2, 3}, 1), Tensor::zeros(DType::f32, {4, 2, 3})});
      EXPECT_EQ(results[0].shape(), Shape({4, 2, 3}));
      EXPECT_TRUE(equal_bits(results[1], Tensor::from<std::int64_t>({3}, {4, 2, 3}))) << is_scan;
      EXPECT_EQ(results[2].shape(), Shape({8, 2, 3}));
    }
  }
}

}  // namespace
}  // namespace graft
