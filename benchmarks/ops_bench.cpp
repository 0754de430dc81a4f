// Times prepared kernels of graphs of one op, or of one short chain: forward (".../forward"), and
// forward with backward (".../train"). ops_torch.py times the same cases under the same names.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "autograd/backward.h"
#include "core/base/parallel.h"
#include "core/ops/builder.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"

namespace graft {
namespace {

using Inputs = std::vector<Expr>;

struct Input {
  Shape shape;
  /// 0 for f32 numbers within [-1, 1); else for i64 indices below this.
  std::int64_t index_limit = 0;

  DType dtype() const { return index_limit == 0 ? DType::f32 : DType::i64; }
};

struct Case {
  std::string name;
  std::vector<Input> inputs;
  std::function<Expr(const Inputs&)> build;
};

Tensor random_tensor(const Input& input, std::mt19937& random) {
  Tensor result = Tensor::empty(input.dtype(), input.shape);
  if (input.index_limit > 0) {
    std::uniform_int_distribution<std::int64_t> index(0, input.index_limit - 1);
    for (std::int64_t& value : result.values<std::int64_t>()) value = index(random);
  } else {
    std::uniform_real_distribution<float> number(-1, 1);
    for (float& value : result.values<float>()) value = number(random);
  }
  return result;
}

/// The case as a plan and what it runs on. In training form the gradient of the result is an input
/// and the gradients of all float inputs are outputs.
struct Prepared {
  Prepared(const Case& wanted, bool is_training) : plan(make_graph(wanted, is_training)) {
    std::mt19937 random(1);
    for (const Input& input : wanted.inputs) inputs.push_back(random_tensor(input, random));
    if (is_training) inputs.push_back(random_tensor({plan.output(0).shape()}, random));
  }

  static std::unique_ptr<Graph> make_graph(const Case& wanted, bool is_training) {
    auto graph = std::make_unique<Graph>();
    Builder builder(*graph);
    Inputs inputs;
    std::vector<Value*> trained;
    for (const Input& input : wanted.inputs) {
      inputs.push_back(builder.expr(
          graph->add_input(graph->unique_name("input"), {input.dtype(), SymShape(input.shape)})));
      if (input.index_limit == 0) trained.push_back(inputs.back().value());
    }
    graph->add_output(wanted.build(inputs).value());
    if (is_training) {
      passes::decompose(*graph);
      Value* const y = graph->outputs().front();
      Value* const dy = graph->add_input("dy", {DType::f32, SymShape(y->known_shape())});
      for (Value* gradient : autograd::backward(*graph, {{y, dy}}, trained)) {
        graph->add_output(gradient);
      }
    } else {
      passes::decompose_where_needed(*graph, cpu());
    }
    passes::settle(*graph);
    return graph;
  }

  Plan plan;
  std::vector<Tensor> inputs;
};

void run_case(benchmark::State& state, const Case& wanted, bool is_training) {
  const DenormalsFlushed flushed;
  Prepared prepared(wanted, is_training);
  prepared.plan.run(prepared.inputs);  // the first run touches its memory
  for (auto _ : state) prepared.plan.run(prepared.inputs);
}

Case lstm() {
  constexpr std::int64_t kSteps = 26;
  constexpr std::int64_t kBatch = 16;
  constexpr std::int64_t kInput = 256;
  static constexpr std::int64_t kHidden = 128;
  return {"Lstm/26x16x256to128",
          {{{kSteps, kBatch, kInput}},
           {{2, 4 * kHidden, kInput}},
           {{2, 4 * kHidden, kHidden}},
           {{2, 8 * kHidden}}},
          [](const Inputs& in) {
            return call_multi("LSTM", "", in, 1,
                              {{"direction", AttributeValue("bidirectional")},
                               {"hidden_size", AttributeValue(kHidden)}})
                .front();
          }};
}

Case layer_norm(std::int64_t rows, std::int64_t length) {
  return {text("LayerNormalization/", rows, "x", length),
          {{{rows, length}}, {{length}}, {{length}}},
          [](const Inputs& in) { return call("LayerNormalization", in); }};
}

Case on_one_input(std::string_view op, const Shape& shape, std::string_view name) {
  return {std::string(name), {{shape}}, [op](const Inputs& in) { return call(op, in); }};
}

Case gather(std::int64_t rows, std::int64_t length) {
  constexpr std::int64_t kCount = 2048;
  return {text("Gather/", kCount, "of", rows, "x", length),
          {{{rows, length}}, {{kCount}, rows}},
          [](const Inputs& in) { return call("Gather", in); }};
}

Case scatter() {
  return {"ScatterND/4096into50000x64",
          {{{50000, 64}}, {{4096, 1}, 50000}, {{4096, 64}}},
          [](const Inputs& in) {
            return call("ScatterND", in, {{"reduction", AttributeValue("add")}});
          }};
}

Case resize(const std::string& mode) {
  return {"Resize/16x64x56x56x2" + mode, {{{16, 64, 56, 56}}}, [mode](const Inputs& in) {
            Builder& builder = in[0].builder();
            const Expr sizes = constant_ints(builder, {16, 64, 112, 112});
            return call("Resize", {in[0], {}, {}, sizes},
                        {{"mode", AttributeValue(mode)},
                         {"coordinate_transformation_mode", AttributeValue("half_pixel")},
                         {"nearest_mode", AttributeValue("floor")}});
          }};
}

Case chain() {
  constexpr std::int64_t kSize = 8'000'000;
  return {"Chain/8M", {{{kSize}}, {{kSize}}, {{kSize}}}, [](const Inputs& in) {
            return call("Relu", {in[0] * in[1] + in[2]}) * sigmoid(in[0]);
          }};
}

/// Gelu with a bias, as exporters wrote it before the op existed.
Case gelu_of_parts() {
  return {"GeluOfParts/2048x512", {{{2048, 512}}, {{512}}}, [](const Inputs& in) {
            const Expr x = in[0] + in[1];
            return x * (call("Erf", {x / 1.4142135}) + 1.0) * 0.5;
          }};
}

Case bias_sum() {
  return {"ReduceSum/8192x2048rows", {{{8192, 2048}}}, [](const Inputs& in) {
            return reduce_sum(in[0], {0}, false);
          }};
}

std::vector<Case> all_cases() {
  return {lstm(),
          layer_norm(2048, 128),
          layer_norm(8192, 768),
          on_one_input("Softmax", {32, 1024, 1024}, "Softmax/32x1024x1024"),
          on_one_input("Softmax", {256, 1000}, "Softmax/256x1000"),
          gather(1000, 128),
          gather(50000, 512),
          scatter(),
          resize("nearest"),
          resize("linear"),
          chain(),
          on_one_input("Gelu", {2048, 512}, "Gelu/2048x512"),
          on_one_input("Erf", {2048, 512}, "Erf/2048x512"),
          gelu_of_parts(),
          bias_sum()};
}

void register_cases() {
  const auto least = [](const std::vector<double>& times) {
    return *std::ranges::min_element(times);
  };
  for (const Case& one : all_cases()) {
    for (const bool is_training : {false, true}) {
      benchmark::RegisterBenchmark(
          (one.name + (is_training ? "/train" : "/forward")).c_str(),
          [one, is_training](benchmark::State& state) { run_case(state, one, is_training); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime()
          ->ComputeStatistics("min", least);
    }
  }
}

}  // namespace
}  // namespace graft

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc > 2) {
    benchmark::ReportUnrecognizedArguments(argc, argv);
    return 2;
  }
  if (argc == 2) graft::set_thread_count(std::atoi(argv[1]));
  graft::register_cases();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
