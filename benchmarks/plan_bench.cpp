// Times what surrounds the kernels: making the plan of a training step, by the depth of the model,
// again and again or once a process, what one wait for memory takes meanwhile, and going from one
// node of a plan to the next.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <optional>
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

/// From a model to a step that is ready to run, and its end.
void make_plan(Model& model) {
  TrainStep step(model);
  step.plan({Tensor::zeros(DType::f32, {kBatch, kWidth})}, Tensor::zeros(DType::i64, {kBatch}));
  benchmark::DoNotOptimize(step.arena_bytes());
}

/// Counts nanoseconds a node of the model.
void count_nodes(benchmark::State& state, std::int64_t nodes) {
  state.counters["per_node"] =
      benchmark::Counter(static_cast<double>(nodes), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

/// Plans made again and again.
void plan_step(benchmark::State& state, Model (*make)(std::int64_t)) {
  Model model = make(state.range(0));
  for (auto _ : state) make_plan(model);
  count_nodes(state, state.range(0));
}

/// Makes a model and its plan in a process of its own; how many seconds the plan took, absent
/// where that failed.
std::optional<double> seconds_in_child(Model (*make)(std::int64_t), std::int64_t depth) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    Model model = make(depth);
    const auto start = std::chrono::steady_clock::now();
    make_plan(model);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    const double seconds = taken.count();
    _exit(write(ends[1], &seconds, sizeof(seconds)) == sizeof(seconds) ? 0 : 1);
  }
  close(ends[1]);
  double seconds = 0;
  const bool is_told = read(ends[0], &seconds, sizeof(seconds)) == sizeof(seconds);
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return is_told ? std::optional(seconds) : std::nullopt;
}

/// The plan of a program that makes one: its memory is touched for the first time. What is made
/// once a process, such as the table of ops, is there before.
void first_plan(benchmark::State& state, Model (*make)(std::int64_t)) {
  constexpr std::int64_t kFew = 8;
  Model small = make(kFew);
  make_plan(small);
  for (auto _ : state) {
    const std::optional<double> seconds = seconds_in_child(make, state.range(0));
    if (!seconds) return state.SkipWithError("the process that plans did not say how long it took");
    state.SetIterationTime(*seconds);
  }
  count_nodes(state, state.range(0));
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
  count_nodes(state, kNodes);
}

void depths(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t depth : {8, 32, 100, 320, 1000, 3200, 10000}) benchmark->Arg(depth);
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(plan_step, elementwise, elementwise_chain)->Apply(depths);
BENCHMARK_CAPTURE(plan_step, linear, linear_chain)->Apply(depths);
BENCHMARK_CAPTURE(first_plan, elementwise, elementwise_chain)->Apply(depths)->UseManualTime();
BENCHMARK_CAPTURE(first_plan, linear, linear_chain)->Apply(depths)->UseManualTime();
BENCHMARK(wait_for_memory)->RangeMultiplier(2)->Range(1, 128)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run_nodes, plan, false);
BENCHMARK_CAPTURE(run_nodes, kernels, true);

}  // namespace
}  // namespace graft

BENCHMARK_MAIN();
