#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "io/onnx.h"
#include "tools/graft/arguments.h"
#include "tools/graft/class_names.h"
#include "tools/graft/file_notes.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/verb.h"
#include "tools/graft/verbosity.h"
#include "train/evaluator.h"
#include "train/progress_bar.h"

namespace graft::cli {
namespace {

struct EvalArguments {
  std::string model;
  DataArguments data;
  LossArguments loss;
  ComputeArguments compute;
  std::string split = "test";
  std::vector<std::string> metrics;
  bool json = false;
};

/// Counts for a table of classes; adds no number of its own to the line.
class ClassTable : public Metric {
 public:
  void reset() override { counts_.reset(); }
  void add(const Tensor& prediction, const Tensor& target, int class_axis) override {
    counts_.add(prediction, target, class_axis);
  }
  std::vector<std::pair<std::string, double>> values() const override { return {}; }

  /// How many of each class were recognised.
  void print(const std::vector<std::string>& names) const {
    for (std::int64_t c = 0; c < counts_.classes(); ++c) {
      std::int64_t all = 0;
      for (std::int64_t guess = 0; guess < counts_.classes(); ++guess)
        all += counts_.count(c, guess);
      if (all == 0) continue;
      const double share = static_cast<double>(counts_.count(c, c)) / static_cast<double>(all);
      std::cout << "  " << percent(share) << " of " << with_commas(all) << "  "
                << name_of_class(names, static_cast<std::size_t>(counts_.classes()), c) << '\n';
    }
  }

 private:
  ConfusionMatrix counts_;
};

void print_evaluation(const Evaluation& result, const Loss& loss) {
  std::cout << loss.name << ' ' << fixed(result.loss, 4);
  if (result.accuracy) std::cout << "  accuracy " << percent(*result.accuracy);
  for (const auto& [name, value] : result.metrics) {
    std::cout << "  " << name << ' ' << fixed(value, 4);
  }
  std::cout << "  samples " << with_commas(result.samples) << '\n';
}

nlohmann::ordered_json evaluation_json(const Evaluation& result, const Loss& loss) {
  nlohmann::ordered_json line{{"loss", result.loss}};
  if (result.accuracy) line["accuracy"] = *result.accuracy;
  for (const auto& [name, value] : result.metrics) line[name] = value;
  line["samples"] = result.samples;
  line["loss_name"] = loss.name;
  return line;
}

ExitCode evaluate(EvalArguments arguments) {
  apply(arguments.compute);
  const Model model = onnx::load(arguments.model);
  if (arguments.loss.output.empty()) arguments.loss.output = noted_output(model);
  complete_data(model, arguments.data);
  const auto dataset = open(arguments.data, arguments.data.spec,
                            arguments.split == "train" ? Split::train : Split::test,
                            wanted_types(model, arguments.loss));
  complete_loss(model, *dataset, arguments.loss);
  const Loss loss = choose_loss(arguments.loss, model, *dataset);
  const std::int64_t batch = arguments.data.batch;
  say_what_is_judged(loss, check_data_fits(model, loss, arguments.loss.output, *dataset, batch));
  say_conflicts(model, dataset->info());
  DataLoader loader(dataset, {.batch = batch, .transforms = normalization(arguments.data)});
  Evaluator evaluator(model, {.loss = loss,
                              .output = arguments.loss.output,
                              .device = arguments.compute.device,
                              .fallback = arguments.compute.fallback});
  for (const std::string& name : arguments.metrics) {
    evaluator.add_metric(metric_from_name(name, loss.blank));
  }
  const auto table = std::make_shared<ClassTable>();
  const bool has_table = verbosity().verbose && !arguments.json && has_class_targets(loss);
  if (has_table) evaluator.add_metric(table);
  ProgressBar bar(!verbosity().quiet);
  const Evaluation result = evaluator.run(loader, bar.counting("eval", loader));
  bar.clear();
  if (!std::isfinite(result.loss)) {
    fail(ErrorKind::numeric, "the loss is ", loss_text(result.loss),
         "; look for values in the data or the weights that are not finite");
  }
  if (arguments.json) {
    print_json(evaluation_json(result, loss));
    return ok;
  }
  print_evaluation(result, loss);
  const std::vector<std::string> names = class_names_of(model);
  if (has_table) table->print(names.empty() ? dataset->info().class_names : names);
  return ok;
}

}  // namespace

Run add_eval(CLI::App& app) {
  const auto arguments = std::make_shared<EvalArguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  add_arguments(app, arguments->data);
  add_split_argument(app, arguments->split);
  add_arguments(app, arguments->loss);
  add_metrics_argument(app, arguments->metrics);
  add_arguments(app, arguments->compute);
  app.add_flag("--json", arguments->json, "print a JSON line");
  return [arguments] { return evaluate(*arguments); };
}

}  // namespace graft::cli
