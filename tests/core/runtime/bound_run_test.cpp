#include "core/runtime/bound_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/ops/builder.h"
#include "core/ops/register_op.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor numbers(const Shape& shape, float first) {
  Tensor tensor = Tensor::zeros(DType::f32, shape);
  float next = first;
  for (float& value : tensor.values<float>()) value = next = next > 1 ? next - 1.7F : next + 0.3F;
  return tensor;
}

/// h = relu(conv(x)), y = the mean of h: two outputs, one of which is read further.
Model make_model() {
  Model model;
  model.set_opset("", 18);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("N"), 3, 9, 9}}));
  const Expr w = builder.expr(graph.add_initializer("w", numbers({8, 3, 3, 3}, 0.2F)));
  const Expr h = call("Relu", {call("Conv", {x, w})});
  graph.rename(h.value(), "h");
  graph.add_output(h.value());
  graph.add_output(call("GlobalAveragePool", {h}).value());
  return model;
}

constexpr int kThreads = 4;
std::atomic<int> arrived = 0;

/// y = x, once as many runs as there are threads are at this node at the same time; 0 where that
/// does not come about.
Kernel make_meet(KernelRequest& request) {
  const std::size_t bytes = request.input(0).shape.size() * sizeof(float);
  return [bytes](const KernelArgs& args) {
    constexpr std::chrono::seconds kLongest{20};
    const auto end = std::chrono::steady_clock::now() + kLongest;
    ++arrived;
    while (arrived < kThreads && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    std::memset(args.outputs[0], 0, bytes);
    if (arrived >= kThreads) std::memcpy(args.outputs[0], args.inputs[0], bytes);
  };
}

class MeetIsAnOp : public testing::Environment {
 public:
  void SetUp() override {
    register_op({.name = "Meet",
                 .domain = "com.example",
                 .since = {{1}},
                 .inputs = {{"x"}},
                 .outputs = {{"y"}},
                 .infer = infer_same,
                 .backward = NotDifferentiable{"a test has no use for it"},
                 .samples = nullptr},
                {{.name = "plain", .make = make_meet}});
  }
};
const testing::Environment* const meet_is_an_op = testing::AddGlobalTestEnvironment(new MeetIsAnOp);

TEST(BoundRun, ReadsAndWritesTheCallersMemory) {
  Session session(make_model());
  const Tensor x = numbers({2, 3, 9, 9}, 0.1F);
  const Tensor h = Tensor::full(DType::f32, {2, 8, 7, 7}, -1);
  const Tensor y = Tensor::full(DType::f32, {2, 8, 1, 1}, -1);
  BoundRun bound = session.bind({x}, {h, y});
  EXPECT_THAT(h.values<const float>(), Each(-1.0F)) << "nothing runs before it is told to";
  for (const float first : {0.1F, -0.6F}) {
    x.copy_from(numbers(x.shape(), first));
    bound.run();
    const auto wanted = session.run({x});
    EXPECT_TRUE(equal_bits(h, wanted[0]));
    EXPECT_TRUE(equal_bits(y, wanted[1]));
  }
}

TEST(BoundRun, WritesWhereElementsAreAlignedAsSuchOnly) {
  Session session(make_model());
  const Tensor x = numbers({1, 3, 9, 9}, 0.1F);
  const auto wanted = session.run({x});
  std::vector<float> memory(static_cast<std::size_t>(1 + x.size() + 1 + wanted[0].size()));
  const Tensor near_x = Tensor::view(DType::f32, x.shape(), memory.data() + 1, nullptr);
  near_x.copy_from(x);
  const Tensor h =
      Tensor::view(DType::f32, wanted[0].shape(), memory.data() + 2 + x.size(), nullptr);
  BoundRun bound = session.bind({near_x}, {h, Tensor::zeros(DType::f32, {1, 8, 1, 1})});
  bound.run();
  EXPECT_TRUE(equal_bits(h, wanted[0]));
}

TEST(BoundRun, MakesTensorsForOutputsAndTakesOthersLater) {
  Session session(make_model());
  const Tensor x = numbers({1, 3, 9, 9}, 0.1F);
  BoundRun bound = session.bind({x});
  ASSERT_EQ(bound.outputs().size(), 2U);
  bound.run();
  const auto wanted = session.run({x});
  EXPECT_TRUE(equal_bits(bound.outputs()[1], wanted[1]));
  const std::vector<Tensor> others{Tensor::zeros(DType::f32, {1, 8, 7, 7}),
                                   Tensor::zeros(DType::f32, {1, 8, 1, 1})};
  const std::vector<Tensor> before = bound.outputs();
  before[1].copy_from(Tensor::zeros(DType::f32, {1, 8, 1, 1}));
  bound.bind({x}, others);
  bound.run();
  EXPECT_TRUE(equal_bits(others[1], wanted[1]));
  EXPECT_THAT(before[1].values<const float>(), Each(0.0F));
}

/// Outputs that no kernel writes to the caller: an input, a constant, one value twice, a view.
TEST(BoundRun, CopiesWhatNoNodeMakes) {
  Model model;
  model.set_opset("", 18);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{2}}));
  const Expr w = builder.expr(graph.add_initializer("w", Tensor::from<float>({2}, {5, 6})));
  const Expr sum = x + w;
  const Expr column = reshape(sum, {2, 1});
  graph.set_outputs({x.value(), w.value(), sum.value(), sum.value(), column.value()});
  Session session(model);
  BoundRun bound = session.bind({Tensor::from<float>({2}, {1, 2})});
  bound.run();
  const std::vector<Tensor>& outputs = bound.outputs();
  EXPECT_THAT(outputs[0].values<const float>(), ElementsAre(1, 2));
  EXPECT_THAT(outputs[1].values<const float>(), ElementsAre(5, 6));
  for (const std::size_t i : {2, 3, 4}) {
    EXPECT_THAT(outputs[i].values<const float>(), ElementsAre(6, 8)) << i;
  }
}

TEST(BoundRun, FourThreadsRunOneModelAtTheSameTime) {
  Model model = make_model();
  Graph& graph = model.graph();
  model.set_opset("com.example", 1);
  graph.set_outputs({Builder(graph).node("Meet", "com.example", {graph.find("h")}, 1)->output()});
  Session session(model);
  Session plain(make_model());
  std::vector<Tensor> wanted;
  std::vector<BoundRun> runs;
  for (int i = 0; i < kThreads; ++i) {
    const Tensor x = numbers({2, 3, 9, 9}, 0.1F * static_cast<float>(i));
    wanted.push_back(plain.run({x}).front());
    runs.push_back(session.bind({x}));
  }
  arrived = 0;
  std::vector<std::thread> threads;
  for (BoundRun& run : runs) threads.emplace_back([&] { run.run(); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_TRUE(equal_bits(runs[i].outputs().front(), wanted[i])) << i;
  }
}

TEST(BoundRun, WhatDoesNotFitIsRefused) {
  Session session(make_model());
  const Tensor x = numbers({1, 3, 9, 9}, 0.1F);
  const Tensor h = Tensor::zeros(DType::f32, {1, 8, 7, 7});
  const Tensor y = Tensor::zeros(DType::f32, {1, 8, 1, 1});
  const auto fails = [&](const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
    return std::string(error_of([&] { session.bind(in, out); }).what());
  };
  EXPECT_THAT(fails({x}, {h}), HasSubstr("the plan has 2 outputs, got 1"));
  EXPECT_THAT(fails({x}, {y, h}), HasSubstr("output 'h' was planned as f32[1,8,7,7], got f32[1,8"));
  EXPECT_THAT(fails({h}, {h, y}), HasSubstr("input 'x' is f32[N,3,9,9], got f32[1,8,7,7]"));
  const Tensor inside = Tensor::view(DType::f32, y.shape(), h.data(), nullptr);
  EXPECT_THAT(fails({x}, {h, inside}), HasSubstr("shares bytes with that for output 'h'"));
  const Tensor over = Tensor::view(DType::f32, y.shape(), x.data(), nullptr);
  EXPECT_THAT(fails({x}, {h, over}), HasSubstr("shares bytes with that for input 'x'"));
}

TEST(BoundRun, ShapesThatDependOnDataAreRefusedByName) {
  Model model;
  model.set_opset("", 18);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{4}});
  graph.add_output(graph.add_node("NonZero", "", {x}, {"where"})->output());
  Session session(model);
  EXPECT_THAT(error_of([&] { session.bind({Tensor::zeros(DType::f32, {4})}); }).what(),
              HasSubstr("NonZero node"));
}

}  // namespace
}  // namespace graft
