// Plans on a device that is not the CPU: where data lie, recorded runs, ops without a kernel.
#include "core/runtime/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "core/ops/expr.h"
#include "core/ops/fallback.h"
#include "tests/core/error_of.h"
#include "tests/cuda/on_card.h"
#include "tests/train/nets.h"

namespace graft {
namespace {

using test::card;
using testing::HasSubstr;

ValueType f32(const Shape& shape) {
  return {DType::f32, SymShape(shape)};
}

/// y = relu(x * w) + w, and its sum over axis 1; the card has kernels for all of it.
std::unique_ptr<Graph> small_graph() {
  auto graph = std::make_unique<Graph>("small");
  Value* const x = graph->add_input("x", f32({3, 5}));
  Value* const w = graph->add_initializer("w", test::random_tensor({5}, 2));
  Value* const axes = graph->add_initializer("axes", Tensor::from<std::int64_t>({1}, {1}));
  Builder builder(*graph);
  Value* const product = builder.node("Mul", "", {x, w}, 1)->output();
  Value* const positive = builder.node("Relu", "", {product}, 1)->output();
  Value* const y = builder.node("Add", "", {positive, w}, 1)->output();
  graph->add_output(y);
  graph->add_output(builder.node("ReduceSum", "", {y, axes}, 1)->output());
  return graph;
}

/// y = matmul(relu(matmul(x, w)), w)
std::unique_ptr<Graph> products() {
  auto graph = std::make_unique<Graph>("products");
  Value* const x = graph->add_input("x", f32({4, 4}));
  Value* const w = graph->add_initializer("w", test::random_tensor({4, 4}, 2));
  Builder builder(*graph);
  Value* const first = builder.node("MatMul", "", {x, w}, 1)->output();
  Value* const positive = builder.node("Relu", "", {first}, 1)->output();
  graph->add_output(builder.node("MatMul", "", {positive, w}, 1)->output());
  return graph;
}

/// variable += x
std::unique_ptr<Graph> sum_up(const Tensor& variable) {
  auto graph = std::make_unique<Graph>("sum_up");
  Value* const x = graph->add_input("x", f32(variable.shape()));
  Value* const v = graph->add_initializer("v", variable);
  v->is_variable = true;
  Builder builder(*graph);
  Value* const sum = builder.node("Add", "", {v, x}, 1)->output();
  graph->add_output(builder.node("Assign", kInternalDomain, {v, sum}, 1)->output());
  return graph;
}

std::vector<Tensor> run(Plan& plan, const Tensor& input, const RunState& state = {}) {
  plan.run({{input}}, state);
  std::vector<Tensor> results;
  for (int i = 0; i < plan.output_count(); ++i) {
    const Tensor& output = plan.output(i);
    results.push_back(&output.device() == &cpu() ? output.clone() : output.to(cpu()));
  }
  return results;
}

void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(equal_bits(a[i], b[i])) << i;
}

TEST(CudaPlan, RunsRecordedOrNotWithOneResult) {
  Plan recorded(small_graph(), {.device = &card()});
  Plan plain(small_graph(), {.device = &card(), .records = false});
  Plan reference(small_graph());
  for (const std::uint64_t seed : {5, 6, 7}) {
    const Tensor x = test::random_tensor({3, 5}, seed);
    const std::vector<Tensor> found = run(recorded, x);
    expect_equal(found, run(plain, x));
    const std::vector<double> sums = to_double(found[1]);
    const std::vector<double> wanted = to_double(run(reference, x)[1]);
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], wanted[i], 1e-5);
  }
  EXPECT_EQ(&recorded.output(0).device(), &card());
}

TEST(CudaPlan, TakesInputsFromWhereTheyLie) {
  Plan plan(small_graph(), {.device = &card()});
  const Tensor x = test::random_tensor({3, 5}, 5);
  const std::vector<Tensor> wanted = run(plan, x);
  run(plan, test::random_tensor({3, 5}, 6));
  expect_equal(run(plan, x.to(card())), wanted);
}

TEST(CudaPlan, PoisonChangesNothing) {
  Plan plan(small_graph(), {.device = &card()});
  Plan poisoned(small_graph(), {.device = &card(), .poison = true});
  const Tensor x = test::random_tensor({3, 5}, 5);
  expect_equal(run(poisoned, x), run(plan, x));
}

TEST(CudaPlan, AProfiledRunMeasuresEachStep) {
  Plan plan(small_graph(), {.device = &card()});
  plan.set_profiling(true);
  run(plan, test::random_tensor({3, 5}, 5));
  EXPECT_FALSE(plan.profile().empty());
  for (const StepProfile& step : plan.profile()) EXPECT_GT(step.seconds, 0.0) << step.kernel;
}

TEST(CudaPlan, NamesAllOpsWithoutAKernel) {
  auto graph = products();
  Builder builder(*graph);
  graph->add_output(builder.node("Det", "", {graph->outputs()[0]}, 1)->output());
  const Error error = error_of([&] { Plan(std::move(graph), {.device = &card()}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("no cuda:emulated kernel for "));
  EXPECT_THAT(error.what(), HasSubstr("Det (1 node)"));
  EXPECT_THAT(error.what(), HasSubstr("--fallback cpu (Fallback::cpu) runs them on the CPU"));
}

TEST(CudaPlan, ACopyOverTooManyAxesIsOneOfTheOpsWithoutAKernel) {
  const auto transposed = [] {
    auto graph = std::make_unique<Graph>("transposed");
    Value* const x = graph->add_input("x", f32(Shape(std::vector<std::int64_t>(9, 2))));
    graph->add_output(Builder(*graph).node("Transpose", "", {x}, 1)->output());
    return graph;
  };
  EXPECT_THAT(error_of([&] { Plan(transposed(), {.device = &card()}); }).what(),
              HasSubstr("Transpose (1 node)"));
  Plan plan(transposed(), {.device = &card(), .fallback = Fallback::cpu});
  Plan reference(transposed());
  const Tensor x = test::random_tensor(Shape(std::vector<std::int64_t>(9, 2)), 5);
  expect_equal(run(plan, x), run(reference, x));
}

TEST(CudaPlan, FallbackRunsOpsOnTheCpu) {
  for (const bool records : {true, false}) {
    auto graph = products();
    Builder builder(*graph);
    graph->add_output(builder.node("Det", "", {graph->outputs()[0]}, 1)->output());
    Plan reference(graph->clone());
    Plan plan(std::move(graph), {.device = &card(), .fallback = Fallback::cpu, .records = records});
    int by_fallback = 0;
    for (const StepProfile& step : plan.profile()) by_fallback += step.kernel == "fallback" ? 1 : 0;
    EXPECT_GE(by_fallback, 1);
    for (const std::uint64_t seed : {5, 6}) {
      const Tensor x = test::random_tensor({4, 4}, seed);
      const std::vector<double> found = to_double(run(plan, x)[1]);
      EXPECT_NEAR(found[0], to_double(run(reference, x)[1])[0], 1e-5);
    }
  }
}

/// Plans give values without elements the address 0 of the arena, which others have too.
TEST(CudaPlan, FallbackKeepsAnEmptyInputApartFromAnOutput) {
  Graph graph("concat");
  Value* const c = graph.add_input("c", f32({2, 1}));
  Value* const empty = graph.add_input("empty", f32({2, 0}));
  Value* const b = graph.add_input("b", f32({2, 3}));
  Builder builder(graph);
  const Attributes settings{{"axis", AttributeValue(std::int64_t{1})}};
  const Node& node = *builder.node("Concat", "", {c, empty, b}, 1, settings);
  const PreparedKernel kernel = prepare_fallback(node, card());
  const Tensor left = Tensor::from<float>({2, 1}, {7, 8}).to(card());
  const Tensor right = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}).to(card());
  const Tensor y = Tensor::zeros(DType::f32, {2, 4}).to(card());
  const Tensor state = Tensor::zeros(DType::u64, {1}).to(card());
  const void* const inputs[] = {left.data(), y.data(), right.data()};
  void* const outputs[] = {y.data()};
  kernel.run({inputs, outputs, nullptr, static_cast<const RunState*>(state.data())});
  card().synchronize();
  EXPECT_THAT(to_double(y.to(cpu())), testing::ElementsAre(7, 1, 2, 3, 8, 4, 5, 6));
}

TEST(CudaPlan, UpdatesAVariableWhereItLies) {
  const Tensor variable = test::random_tensor({300}, 1);
  const Tensor on_card = variable.to(card());
  Plan plan(sum_up(on_card), {.device = &card()});
  Plan reference(sum_up(variable));
  for (const std::uint64_t seed : {5, 6, 7}) {
    const Tensor x = test::random_tensor({300}, seed);
    run(plan, x);
    run(reference, x);
  }
  EXPECT_TRUE(equal_bits(on_card, variable));
  EXPECT_EQ(kind_of([&] { on_card.values<float>(); }), ErrorKind::device);
  EXPECT_DEATH(static_cast<volatile float*>(on_card.data())[0], "");
}

TEST(CudaPlan, RefusesToUpdateAVariableElsewhere) {
  EXPECT_THAT(
      error_of([] { Plan(sum_up(Tensor::zeros(DType::f32, {3})), {.device = &card()}); }).what(),
      HasSubstr("variable 'v' lies on cpu, but is updated on cuda:emulated"));
}

TEST(CudaPlan, ReadsWhatChangesElsewhereInEachRun) {
  for (Device* const home : devices()) {
    Device& other = home == &cpu() ? card() : cpu();
    auto graph = small_graph();
    Value* const w = graph->find("w");
    w->is_variable = true;
    w->set_initializer(w->initializer().to(*home));
    const Tensor weight = w->initializer();
    Plan plan(std::move(graph), {.device = &other});
    const Tensor x = test::random_tensor({3, 5}, 5);
    const Tensor before = run(plan, x)[0];
    weight.copy_from(Tensor::full(DType::f32, {5}, 2.0));
    const Tensor after = run(plan, x)[0];
    for (std::size_t i = 0; i < 15; ++i) {
      const float doubled = 2.0F * x.values<const float>()[i];
      EXPECT_EQ(after.values<const float>()[i], (doubled > 0.0F ? doubled : 0.0F) + 2.0F);
    }
    EXPECT_FALSE(equal_bits(before, after));
  }
}

std::unique_ptr<Graph> dropout() {
  auto graph = std::make_unique<Graph>("dropout");
  Value* const x = graph->add_input("x", f32({40, 40}));
  Builder builder(*graph);
  const Attributes settings{{"ratio", AttributeValue(0.3F)},
                            {"seed", AttributeValue(std::int64_t{11})},
                            {"op_id", AttributeValue(std::int64_t{3})}};
  graph->add_output(builder.node("DropoutTraining", kInternalDomain, {x}, 1, settings)->output());
  return graph;
}

TEST(CudaPlan, ARecordedRunDrawsAnewInEachStep) {
  Plan plan(dropout(), {.device = &card()});
  Plan reference(dropout());
  const Tensor x = test::random_tensor({40, 40}, 5);
  std::vector<Tensor> last;
  for (const std::uint64_t step : {0, 1, 2}) {
    const std::vector<Tensor> found = run(plan, x, {.step = step});
    expect_equal(found, run(reference, x, {.step = step}));
    EXPECT_TRUE(last.empty() || !equal_bits(found[0], last[0])) << "step " << step;
    last = found;
  }
}

TEST(CudaPlan, FreesItsMemory) {
  const std::size_t free_before = card().free_bytes();
  {
    const Plan plan(small_graph(), {.device = &card()});
    EXPECT_LT(card().free_bytes(), free_before);
  }
  EXPECT_EQ(card().free_bytes(), free_before);
}

}  // namespace
}  // namespace graft
