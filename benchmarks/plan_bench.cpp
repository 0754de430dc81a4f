// Times what surrounds the kernels: making the plan of a training step, by the depth of the model,
// what one wait for memory takes meanwhile, and going from one node of a plan to the next.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"
#include "train/train_step.h"

namespace graft {
namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kWidth = 8;

Tensor parameter(const Shape& shape) {
  return Tensor::full(DType::f32, shape, 0.1);
}

/// A chain of `depth` nodes that call `add_node(builder, x, index)`.
template <class AddNode>
Model chain(std::int64_t depth, AddNode&& add_node) {
  Model model;
  model.set_opset("", kNewestOpset);
  Graph& graph = model.graph();
  Builder builder(graph);
  Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape(Shape{kBatch, kWidth})}));
  for (std::int64_t i = 0; i < depth; ++i) x = add_node(builder, x, i);
  graph.add_output(x.value());
  return model;
}

/// x * w, x + b, relu(x), ... element by element.
Model elementwise_chain(std::int64_t depth) {
  return chain(depth, [](Builder& builder, const Expr& x, std::int64_t i) {
    if (i % 3 == 2) return call("Relu", {x});
    const Expr w = builder.expr(builder.constant(parameter({kWidth}), "w"));
    return i % 3 == 0 ? x * w : x + w;
  });
}

/// Layers of 8 x 8 with a ReLU behind each.
Model linear_chain(std::int64_t depth) {
  return chain(depth, [](Builder& builder, const Expr& x, std::int64_t i) {
    if (i % 2 == 1) return call("Relu", {x});
    const Expr w = builder.expr(builder.constant(parameter({kWidth, kWidth}), "w"));
    return call("Gemm", {x, w, builder.expr(builder.constant(parameter({kWidth}), "b"))});
  });
}

/// From a model to a step that is ready to run. Counts nanoseconds a node of the model.
void plan_step(benchmark::State& state, Model (*make)(std::int64_t)) {
  Model model = make(state.range(0));
  const std::vector<Tensor> inputs{Tensor::zeros(DType::f32, {kBatch, kWidth})};
  const Tensor target = Tensor::zeros(DType::i64, {kBatch});
  for (auto _ : state) {
    TrainStep step(model);
    step.plan(inputs, target);
    benchmark::DoNotOptimize(step.arena_bytes());
  }
  state.counters["per_node"] = benchmark::Counter(
      static_cast<double>(state.range(0)),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Goes round cache lines in random order, each of which says where the next lies: what a walk over
/// a graph waits for where nodes lie apart and fit no near cache. Counts nanoseconds a line.
void wait_for_memory(benchmark::State& state) {
  struct alignas(64) Line {
    const Line* next;
  };
  std::vector<Line> lines(static_cast<std::size_t>(state.range(0)) << 20 >> 6);
  std::vector<std::size_t> order(lines.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::shuffle(order, std::mt19937(1));
  for (std::size_t i = 0; i < order.size(); ++i) {
    lines[order[i]].next = &lines[order[(i + 1) % order.size()]];
  }
  const Line* line = lines.data();
  for (auto _ : state) {
    for (std::size_t i = 0; i < lines.size(); ++i) line = line->next;
    benchmark::DoNotOptimize(line);
  }
  state.counters["per_line"] = benchmark::Counter(
      static_cast<double>(lines.size()),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// A run of a plan of ReLUs on one number each, or of their kernels alone: the difference is what
/// the plan adds to a node.
void run_nodes(benchmark::State& state, bool alone) {
  constexpr std::int64_t kNodes = 4096;
  auto graph = std::make_unique<Graph>();
  Value* const x = graph->add_input("x", {DType::f32, SymShape(Shape{1})});
  Builder builder(*graph);
  Expr y = builder.expr(x);
  for (std::int64_t i = 0; i < kNodes; ++i) y = call("Relu", {y});
  graph->add_output(y.value());
  const PreparedKernel kernel = prepare_kernel(*graph->nodes().front(), cpu());
  Plan plan(std::move(graph));
  const std::vector<Tensor> inputs{Tensor::full(DType::f32, {1}, 2.0)};
  float result = 0.0F;
  const void* const input = inputs[0].data();
  void* const output = &result;
  const RunState run;
  const KernelArgs arguments{{&input, 1}, {&output, 1}, nullptr, &run};
  for (auto _ : state) {
    if (alone) {
      for (std::int64_t i = 0; i < kNodes; ++i) kernel.run(arguments);
    } else {
      plan.run(inputs, run);
    }
  }
  state.counters["per_node"] = benchmark::Counter(
      static_cast<double>(kNodes),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void depths(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t depth : {8, 32, 100, 320, 1000, 3200, 10000}) benchmark->Arg(depth);
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(plan_step, elementwise, elementwise_chain)->Apply(depths);
BENCHMARK_CAPTURE(plan_step, linear, linear_chain)->Apply(depths);
BENCHMARK(wait_for_memory)->RangeMultiplier(2)->Range(1, 128)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_nodes, plan, false);
BENCHMARK_CAPTURE(run_nodes, kernels, true);

}  // namespace
}  // namespace graft

BENCHMARK_MAIN();
