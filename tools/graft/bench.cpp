#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/memory_use.h"
#include "core/graph/edit.h"
#include "core/runtime/inference.h"
#include "core/runtime/plan.h"
#include "core/runtime/segment.h"
#include "core/runtime/session.h"
#include "io/onnx.h"
#include "tools/graft/arguments.h"
#include "tools/graft/bench_data.h"
#include "tools/graft/cost.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/machine.h"
#include "tools/graft/options.h"
#include "tools/graft/profile.h"
#include "tools/graft/train_arguments.h"
#include "tools/graft/verb.h"
#include "tools/graft/verbosity.h"
#include "train/compile.h"
#include "train/evaluator.h"
#include "train/progress_bar.h"

namespace graft::cli {
namespace {

struct BenchArguments {
  std::string model;
  bool train = false;
  LossArguments loss;
  OptimizerArguments optimizer;
  std::size_t memory = 0;
  BenchDataArguments data;
  ComputeArguments compute;
  Precision precision = Precision::f32;
  double seconds = 3.0;
  bool profile = false;
  std::string trace;
  bool json = false;

  bool measures_steps() const { return profile || !trace.empty(); }
};

/// Where the time of some more runs goes.
template <class Runner>
void show_profile(const BenchArguments& arguments, Runner& runner,
                  const std::function<void()>& run) {
  constexpr int kRuns = 10;
  runner.set_profiling(true);
  for (int i = 0; i < kRuns; ++i) run();
  runner.set_profiling(false);
  if (arguments.profile) print_profile(std::cerr, runner.profile(), kRuns);
  if (!arguments.trace.empty()) write_trace(arguments.trace, runner.profile(), kRuns);
}

/// Wall time in milliseconds.
class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

struct Times {
  std::vector<double> milliseconds;

  double median() {
    auto middle = milliseconds.begin() + static_cast<std::ptrdiff_t>(milliseconds.size() / 2);
    std::ranges::nth_element(milliseconds, middle);
    return *middle;
  }
  double min() const { return *std::ranges::min_element(milliseconds); }
};

/// Repeats `step` for `seconds`, at least five times, after a warm-up.
Times repeat(double seconds, const std::function<void()>& step) {
  constexpr int kWarmUp = 3;
  constexpr std::size_t kLeast = 5;
  const Stopwatch warming;
  for (int i = 0; i < kWarmUp || warming.milliseconds() < 1e2 * seconds; ++i) step();
  Times times;
  ProgressBar bar(!verbosity().quiet);
  StageProgress progress{.name = "measuring", .all = static_cast<std::int64_t>(1e3 * seconds)};
  const Stopwatch all;
  while (times.milliseconds.size() < kLeast || all.milliseconds() < 1e3 * seconds) {
    bar.show(progress);
    progress.done = static_cast<std::int64_t>(all.milliseconds());
    const Stopwatch one;
    step();
    times.milliseconds.push_back(one.milliseconds());
  }
  return times;
}

/// A training step's beginnings.
struct FirstStep {
  float loss = 0.0F;
  double milliseconds = 0.0;  // from the loaded model, the plan included
  std::uint64_t rss_bytes = 0;
  std::size_t parameter_bytes = 0;
  std::size_t state_bytes = 0;
};

struct Figures {
  Times times;
  double plan_ms = 0.0;
  std::optional<FirstStep> first;
  std::optional<std::size_t> arena_bytes;  // of one plan
  std::size_t lower_bound_bytes = 0;
};

/// As training does: a card is at a step while the one before is read, so that a time is from the
/// end of one to that of the next.
Times repeat_steps(double seconds, TrainStep& step, const std::vector<Tensor>& inputs,
                   const std::vector<Tensor>& targets) {
  StartedStep last = step.start(inputs, targets);
  return repeat(seconds, [&] {
    const StartedStep next = step.start(inputs, targets);
    last.loss();
    last = next;
  });
}

Figures bench_training(const BenchArguments& arguments, Model& model, const Loss& loss,
                       const BenchData& data) {
  TrainOptions options;
  options.loss = loss;
  options.optimizer = make_optimizer(arguments.optimizer, SGD{}.lr, SGD{}.momentum);
  options.groups = make_groups(arguments.optimizer);
  options.output = arguments.loss.output;
  options.device = arguments.compute.device;
  options.fallback = arguments.compute.fallback;
  options.precision = arguments.precision;
  options.state_precision = arguments.optimizer.state_precision;
  options.memory_budget = arguments.memory;
  Figures figures;
  const Stopwatch since_load;
  TrainStep step(model, options);
  const std::vector<Tensor> inputs = data.tensors();
  step.plan(inputs, data.targets);
  figures.plan_ms = since_load.milliseconds();
  const float loss_before = step.run(inputs, data.targets);
  figures.first = {loss_before, since_load.milliseconds(), resident_bytes(), step.parameter_bytes(),
                   step.state_bytes()};
  figures.times = repeat_steps(arguments.seconds, step, inputs, data.targets);
  figures.arena_bytes = step.arena_bytes();
  figures.lower_bound_bytes = step.lower_bound_bytes();
  if (arguments.measures_steps()) {
    show_profile(arguments, step, [&] { step.run(inputs, data.targets); });
  }
  return figures;
}

Figures bench_plan(const BenchArguments& arguments, std::unique_ptr<Graph> graph,
                   const PlanOptions& options, const std::vector<Tensor>& inputs,
                   const Stopwatch& since_load) {
  Figures figures;
  Plan plan(std::move(graph), options);
  figures.plan_ms = since_load.milliseconds();
  figures.times = repeat(arguments.seconds, [&] { plan.run(inputs); });
  figures.arena_bytes = plan.arena_bytes();
  figures.lower_bound_bytes = plan.lower_bound_bytes();
  if (arguments.measures_steps()) show_profile(arguments, plan, [&] { plan.run(inputs); });
  return figures;
}

/// What a Session runs: where that is one plan, without the copies that it makes of its outputs.
Figures bench_inference(const BenchArguments& arguments, const Model& model,
                        const BenchData& data) {
  const PlanOptions options{.device = &device(arguments.compute.device),
                            .fallback = arguments.compute.fallback};
  const Stopwatch since_load;
  if (data.graph != nullptr) {
    std::unique_ptr<Graph> graph =
        inference_graph(inference_form(model).graph(), data.types, *options.device);
    if (first_unplanned(*graph) == nullptr) {
      return bench_plan(arguments, std::move(graph), options, data.tensors(), since_load);
    }
  }
  if (arguments.measures_steps()) {
    fail(ErrorKind::argument,
         "no single plan holds this model, so that no steps can be told apart: leave out --profile "
         "and --trace");
  }
  Session session(model, {.device = options.device, .fallback = options.fallback});
  session.run_data(data.inputs);
  Figures figures;
  figures.plan_ms = since_load.milliseconds();
  figures.times = repeat(arguments.seconds, [&] { session.run_data(data.inputs); });
  return figures;
}

/// `load_ms`: from the process's start to the loaded model.
nlohmann::ordered_json figures_json(Figures& figures, double load_ms,
                                    std::optional<std::int64_t> macs) {
  nlohmann::ordered_json line{{"step_ms_median", figures.times.median()},
                              {"step_ms_min", figures.times.min()},
                              {"steps", figures.times.milliseconds.size()},
                              {"load_ms", load_ms},
                              {"plan_ms", figures.plan_ms}};
  if (figures.first) {
    line["first_loss"] = figures.first->loss;
    line["first_step_ms"] = load_ms + figures.first->milliseconds;
    line["rss_after_first_step_bytes"] = figures.first->rss_bytes;
    line["parameter_bytes"] = figures.first->parameter_bytes;
    line["state_bytes"] = figures.first->state_bytes;
  }
  if (figures.arena_bytes) {
    line["arena_bytes"] = *figures.arena_bytes;
    line["lower_bound_bytes"] = figures.lower_bound_bytes;
  }
  line["peak_rss_bytes"] = peak_resident_bytes();
  if (macs) {
    // The backward pass has two products for each of the forward pass.
    const double operations = 2.0 * static_cast<double>(*macs) * (figures.first ? 3.0 : 1.0);
    line["flops_per_step"] = operations;
    line["fma_peak_fraction"] = operations / (figures.times.min() * 1e-3) / measure_fma_peak();
  }
  return line;
}

/// All its digits; JSON has none for a NaN.
std::string first_loss_text(const nlohmann::ordered_json& loss) {
  const auto value = loss.get<double>();
  return std::isfinite(value) ? loss.dump() : loss_text(value);
}

void print_figures(const nlohmann::ordered_json& line) {
  std::cout << "step         " << fixed(line["step_ms_median"], 3) << " ms median, "
            << fixed(line["step_ms_min"], 3) << " ms min, " << line["steps"] << " steps\n";
  std::cout << "start        " << fixed(line["load_ms"], 1) << " ms to the loaded model, "
            << fixed(line["plan_ms"], 1) << " ms to plan";
  if (line.contains("first_step_ms")) {
    std::cout << ", first step done after " << fixed(line["first_step_ms"], 1) << " ms with "
              << bytes_text(line["rss_after_first_step_bytes"]) << " resident\n"
              << "first loss   " << first_loss_text(line["first_loss"]);
  }
  std::cout << '\n';
  std::cout << "memory       ";
  if (line.contains("arena_bytes")) {
    std::cout << "arena " << bytes_text(line["arena_bytes"]) << ", ";
  } else {
    std::cout << "plans and calls between them, ";
  }
  if (line.contains("state_bytes")) {
    std::cout << "parameters " << bytes_text(line["parameter_bytes"]) << ", optimizer state "
              << bytes_text(line["state_bytes"]) << ", ";
  }
  std::cout << "peak resident " << bytes_text(line["peak_rss_bytes"]) << '\n';
  if (line.contains("flops_per_step")) {
    std::cout << "work         " << short_count(line["flops_per_step"]) << "FLOP a step, "
              << percent(line["fma_peak_fraction"]) << " of the machine's FMA peak\n";
  }
}

ExitCode bench(const BenchArguments& arguments) {
  const double before_ms = 1e3 * processor_seconds();
  const Stopwatch loading;
  apply(arguments.compute);
  Model model = onnx::load(arguments.model);
  const double load_ms = before_ms + loading.milliseconds();
  if (arguments.data.batch && !arguments.data.has_files()) {
    edit::set_batch(model, *arguments.data.batch);
  }
  const Loss loss = choose_loss(arguments.loss);
  BenchDataArguments asked = arguments.data;
  asked.output = arguments.loss.output;
  const BenchData data = make_bench_data(asked, model, arguments.train ? &loss : nullptr);
  const std::optional<std::int64_t> macs =
      data.graph == nullptr ? std::nullopt : multiply_adds(*data.graph);
  Figures figures = arguments.train ? bench_training(arguments, model, loss, data)
                                    : bench_inference(arguments, model, data);
  const nlohmann::ordered_json line = figures_json(figures, load_ms, macs);
  if (arguments.json) {
    print_json(line);
  } else {
    print_figures(line);
  }
  return ok;
}

}  // namespace

Run add_bench(CLI::App& app) {
  const auto arguments = std::make_shared<BenchArguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  app.add_flag("--train", arguments->train, "measure training steps (default: inference)");
  add_arguments(app, arguments->loss);
  add_arguments(app, arguments->optimizer);
  add_memory_argument(app, arguments->memory);
  app.add_option("--batch,--batch-size", arguments->data.batch,
                 "samples in a made-up batch (default: 64)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  app.add_option("--input", arguments->data.files, "a .npy or .pb file (default: made-up numbers)")
      ->type_name("NAME=FILE");
  app.add_option("--inputs", arguments->data.folder,
                 "a folder of input_0.pb, ... or NAME.npy, or of test_data_set_*")
      ->type_name("DIR")
      ->excludes("--input");
  app.add_option("--target", arguments->data.targets,
                 "a .npy or .pb file, one for each output that the loss names")
      ->type_name("FILE");
  for (const char* files : {"--input", "--inputs"}) {
    app.get_option("--batch")->excludes(app.get_option(files));  // files have theirs
  }
  add_arguments(app, arguments->compute);
  add_arguments(app, arguments->precision);
  app.add_option("--seconds", arguments->seconds, "how long to measure")
      ->capture_default_str()
      ->check(between(0.0, 86400.0));
  app.add_flag("--profile", arguments->profile, "show on stderr where the time goes");
  app.add_option("--trace", arguments->trace, "write an average step in Chrome's trace format")
      ->type_name("FILE");
  app.add_flag("--json", arguments->json, "print a JSON line");
  for (const char* option :
       {"--loss", "--output", "--optimizer", "--lr", "--momentum", "--weight-decay", "--nesterov",
        "--state-precision", "--memory", "--target", "--precision"}) {
    app.get_option(option)->needs("--train");  // inference would take no notice of them
  }
  return [arguments] { return bench(*arguments); };
}

}  // namespace graft::cli
