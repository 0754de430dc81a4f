// Sessions whose inputs and outputs lie in memory of the card that the caller owns.
#include "core/runtime/bound_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/device/cuda/emulated/emulator.h"
#include "core/layers/nets.h"
#include "core/ops/builder.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"
#include "tests/cuda/on_card.h"
#include "tests/train/nets.h"
#include "train/train_step.h"

namespace graft {
namespace {

using test::card;
using testing::ElementsAre;
using testing::HasSubstr;

SessionOptions on_card() {
  return {.device = &card()};
}

Tensor on_card(const Tensor& tensor) {
  return tensor.to(card());
}

/// x [n,4] to h = relu(x w) and y = the sum of each of its rows.
Model make_model() {
  Model model;
  model.set_opset("", 18);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{Dim("n"), 4}}));
  const Expr w = builder.expr(graph.add_initializer("w", test::random_tensor({4, 6}, 2)));
  const Expr axes =
      builder.expr(graph.add_initializer("axes", Tensor::from<std::int64_t>({1}, {1})));
  const Expr h = call("Relu", {call("MatMul", {x, w})});
  graph.rename(h.value(), "h");
  graph.add_output(h.value());
  const Expr y = call("ReduceSum", {h, axes});
  graph.rename(y.value(), "y");
  graph.add_output(y.value());
  return model;
}

/// What a session gives that copies.
std::vector<Tensor> plain_run(const Model& model, const Tensor& x) {
  return Session(model, on_card()).run({x});
}

void expect_equal(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(equal_bits(found[i], wanted[i])) << i;
}

/// The first run is plain, the second recorded, the rest replayed.
TEST(CudaBoundRun, ReadsAndWritesTheCallersMemory) {
  const Model model = make_model();
  Session session(model, on_card());
  const Tensor x = Tensor::zeros(DType::f32, {3, 4}, card());
  const std::vector<Tensor> outputs{Tensor::zeros(DType::f32, {3, 6}, card()),
                                    Tensor::zeros(DType::f32, {3, 1}, card())};
  BoundRun bound = session.bind({x}, outputs);
  for (const std::uint64_t seed : {5, 6, 7, 8}) {
    const Tensor here = test::random_tensor({3, 4}, seed);
    x.copy_from(here);
    bound.run();
    expect_equal(outputs, plain_run(model, here));
  }
}

TEST(CudaBoundRun, TakesMemoryThatTheCallerAllocated) {
  const Model model = make_model();
  Session session(model, on_card());
  const Tensor x = test::random_tensor({2, 4}, 5);
  const test::OnCard<float> all(std::vector<float>(4 + 8 + 12 + 4, -1.0F));
  float* const memory = all.data() + 4;
  const auto view = [](const Shape& shape, float* at) {
    return Tensor::view(DType::f32, shape, at, nullptr, card());
  };
  const Tensor given = view({2, 4}, memory);
  given.copy_from(x);
  BoundRun bound = session.bind({given}, {view({2, 6}, memory + 8), view({2, 1}, memory + 20)});
  for (int i = 0; i < 3; ++i) bound.run();
  expect_equal(bound.outputs(), plain_run(model, x));
  EXPECT_EQ(all.read()[3], -1.0F);
  EXPECT_EQ(all.read()[26], -1.0F);
}

TEST(CudaBoundRun, CopiesAndAllocatesNothing) {
  Session session(make_net("lenet", {1, 16, 16}, 3, 3), on_card());
  BoundRun bound = session.bind({on_card(test::random_tensor({2, 1, 16, 16}, 1))});
  bound.run();
  const std::size_t kernels_before = emulated::kernels_run();
  bound.run();
  const std::size_t kernels = emulated::kernels_run() - kernels_before;
  EXPECT_GT(kernels, 0U);
  const std::size_t allocations = emulated::allocations();
  const std::size_t copies = emulated::copies_over_the_bus();
  const std::size_t waits = emulated::stream_waits();
  for (int i = 0; i < 3; ++i) bound.run();
  EXPECT_EQ(emulated::allocations(), allocations);
  EXPECT_EQ(emulated::copies_over_the_bus(), copies);
  EXPECT_EQ(emulated::stream_waits(), waits + 3);
  EXPECT_EQ(emulated::kernels_run(), kernels_before + 4 * kernels);
}

TEST(CudaBoundRun, TakesOtherTensorsLater) {
  const Model model = make_model();
  Session session(model, on_card());
  BoundRun bound = session.bind({on_card(test::random_tensor({3, 4}, 5))});
  for (int i = 0; i < 3; ++i) bound.run();
  const std::vector<Tensor> before = bound.outputs();
  const std::vector<Tensor> kept{before[0].clone(), before[1].clone()};
  const Tensor x = test::random_tensor({3, 4}, 6);
  const std::vector<Tensor> others{Tensor::zeros(DType::f32, {3, 6}, card()),
                                   Tensor::zeros(DType::f32, {3, 1}, card())};
  bound.bind({on_card(x)}, others);
  for (int i = 0; i < 3; ++i) {
    for (const Tensor& output : others) card().fill(output.data(), 0, output.bytes());
    bound.run();
    expect_equal(others, plain_run(model, x));
  }
  expect_equal(before, kept);
}

/// Outputs that no kernel writes to the caller: an input, a constant, one value twice, a view.
TEST(CudaBoundRun, CopiesWhatNoNodeMakes) {
  Model model;
  model.set_opset("", 18);
  Graph& graph = model.graph();
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{2}}));
  const Expr w = builder.expr(graph.add_initializer("w", Tensor::from<float>({2}, {5, 6})));
  const Expr sum = x + w;
  const Expr column = reshape(sum, {2, 1});
  graph.set_outputs({x.value(), w.value(), sum.value(), sum.value(), column.value()});
  Session session(model, on_card());
  BoundRun bound = session.bind({on_card(Tensor::from<float>({2}, {1, 2}))});
  for (int run = 0; run < 3; ++run) {
    for (const Tensor& output : bound.outputs()) card().fill(output.data(), 0, output.bytes());
    bound.run();
    const std::vector<Tensor>& outputs = bound.outputs();
    EXPECT_THAT(to_double(outputs[0]), ElementsAre(1, 2));
    EXPECT_THAT(to_double(outputs[1]), ElementsAre(5, 6));
    for (const std::size_t i : {2, 3, 4})
      EXPECT_THAT(to_double(outputs[i]), ElementsAre(6, 8)) << i;
  }
}

TEST(CudaBoundRun, RunsOpsWithoutAKernelOnTheCpu) {
  Model model;
  model.set_opset("", 18);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{3, 3}});
  graph.add_output(graph.add_node("Det", "", {x}, {"y"})->output());
  const std::vector<Tensor> inputs{on_card(test::random_tensor({3, 3}, 4))};
  Session strict(model, on_card());
  EXPECT_THAT(error_of([&] { strict.bind(inputs); }).what(), HasSubstr("Det (1 node)"));
  Session session(model, {.device = &card(), .fallback = Fallback::cpu});
  BoundRun bound = session.bind(inputs);
  for (int i = 0; i < 3; ++i) bound.run();
  expect_equal(bound.outputs(), Session(model).run({inputs[0].to(cpu())}));
}

TEST(CudaBoundRun, FollowsAModelThatTrainsOnTheCard) {
  Model model = make_model();
  TrainStep step(model, {.loss = mse(), .output = "h", .device = "cuda:emulated"});
  const Tensor x = test::random_tensor({3, 4}, 1);
  const Tensor target = test::random_tensor({3, 6}, 2);
  step.run({x}, target);
  Session session(model, {.device = &card(), .weights_change = true});
  BoundRun bound = session.bind({on_card(x)});
  bound.run();
  Tensor last;
  for (int i = 0; i < 3; ++i) {
    const std::size_t copies = emulated::copies_over_the_bus();
    bound.run();
    EXPECT_EQ(emulated::copies_over_the_bus(), copies);
    expect_equal(bound.outputs(), session.run({x}));
    EXPECT_FALSE(equal_bits(bound.outputs()[0], last));
    last = bound.outputs()[0].clone();
    step.run({x}, target);
  }
}

TEST(CudaBoundRun, ThreadsShareTheWeights) {
  constexpr std::size_t kThreads = 3;
  constexpr std::int64_t kWide = 512;
  Model model;
  model.set_opset("", 18);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{1, kWide}});
  Value* const w = graph.add_initializer("w", test::random_tensor({kWide, kWide}, 2));
  graph.add_output(graph.add_node("MatMul", "", {x, w}, {"y"})->output());
  Session session(model, on_card());
  std::vector<Tensor> inputs;
  std::vector<BoundRun> runs;
  std::size_t free_after_one = 0;
  for (std::size_t i = 0; i < kThreads; ++i) {
    inputs.push_back(test::random_tensor({1, kWide}, 10 + i));
    runs.push_back(session.bind({on_card(inputs.back())}));
    if (i == 0) free_after_one = card().free_bytes();
  }
  EXPECT_LT(free_after_one - card().free_bytes(), kWide * kWide * sizeof(float));
  std::vector<std::thread> threads;
  for (BoundRun& run : runs) {
    threads.emplace_back([&run] {
      for (int i = 0; i < 3; ++i) run.run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kThreads; ++i) {
    expect_equal(runs[i].outputs(), session.run({inputs[i]}));
  }
}

class CudaBoundRunRefuses : public testing::Test {
 protected:
  Error refusal(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    return error_of([&] { session_.bind(inputs, outputs); });
  }

  Session session_{make_model(), on_card()};
  Tensor x_ = Tensor::zeros(DType::f32, {3, 4}, card());
  Tensor h_ = Tensor::zeros(DType::f32, {3, 6}, card());
  Tensor y_ = Tensor::zeros(DType::f32, {3, 1}, card());
};

TEST_F(CudaBoundRunRefuses, TensorsOnTheCpu) {
  const Error error = refusal({x_.to(cpu())}, {h_, y_});
  EXPECT_EQ(error.kind(), ErrorKind::device);
  EXPECT_THAT(error.what(), HasSubstr("input 'x' lies on cpu, the plan runs on cuda:emulated; "
                                      "Tensor::to brings it there"));
  EXPECT_THAT(refusal({x_}, {h_, y_.to(cpu())}).what(), HasSubstr("output 'y' lies on cpu"));
}

TEST_F(CudaBoundRunRefuses, OtherTypesAndShapes) {
  const Tensor wide = Tensor::zeros(DType::f64, {3, 6}, card());
  EXPECT_THAT(refusal({x_}, {wide, y_}).what(),
              HasSubstr("output 'h' was planned as f32[3,6], got f64[3,6]"));
  EXPECT_THAT(refusal({x_}, {h_, x_}).what(),
              HasSubstr("output 'y' was planned as f32[3,1], got f32[3,4]"));
  EXPECT_THAT(refusal({x_}, {h_}).what(), HasSubstr("the plan has 2 outputs, got 1"));
  EXPECT_THAT(
      refusal({x_}, {h_, Tensor::view(DType::f32, {3, 1}, x_.data(), nullptr, card())}).what(),
      HasSubstr("shares bytes with that for input 'x'"));
}

TEST_F(CudaBoundRunRefuses, MemoryThatIsNotTheCards) {
  std::vector<float> here(12);
  const auto view = [](void* memory) {
    return Tensor::view(DType::f32, {3, 4}, memory, nullptr, card());
  };
  const Error error = refusal({view(here.data())}, {h_, y_});
  EXPECT_EQ(error.kind(), ErrorKind::device);
  EXPECT_THAT(error.what(),
              HasSubstr("input 'x' was said to lie on cuda:emulated, but its 48 bytes "
                        "do not, or not all"));
  const test::OnCard<float> small(std::vector<float>(11));
  EXPECT_EQ(refusal({view(small.data())}, {h_, y_}).kind(), ErrorKind::device);
}

TEST_F(CudaBoundRunRefuses, MemoryThatKernelsCannotReadAtOnce) {
  const test::OnCard<float> memory(std::vector<float>(13));
  const Tensor shifted = Tensor::view(DType::f32, {3, 4}, memory.data() + 1, nullptr, card());
  const Error error = refusal({shifted}, {h_, y_});
  EXPECT_EQ(error.kind(), ErrorKind::argument);
  EXPECT_THAT(error.what(), HasSubstr("input 'x' starts 4 bytes after a multiple of 16, wanted"));
}

}  // namespace
}  // namespace graft
