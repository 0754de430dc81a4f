#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "io/onnx.h"
#include "tools/graft/arguments.h"
#include "tools/graft/file_notes.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/options.h"
#include "tools/graft/verb.h"
#include "tools/graft/verbosity.h"
#include "train/evaluator.h"
#include "train/progress_bar.h"

namespace graft::cli {
namespace {

struct Arguments {
  std::string model;
  DataArguments data;
  LossArguments loss;
  ComputeArguments compute;
  std::string split = "test";
  std::vector<std::string> metrics;
  bool json = false;
};

ExitCode evaluate(const Arguments& arguments) {
  apply(arguments.compute);
  const Model model = onnx::load(arguments.model);
  const auto dataset = open(arguments.data, arguments.data.spec,
                            arguments.split == "train" ? Split::train : Split::test,
                            wanted_types(model, arguments.loss.output));
  const Loss loss = choose_loss(arguments.loss, model, *dataset);
  const std::int64_t batch = arguments.data.batch;
  say_what_is_judged(loss, check_data_fits(model, loss, arguments.loss.output, *dataset, batch));
  DataArguments data = arguments.data;
  data.normalize = normalization_for(model, data.normalize, data.spec);
  DataLoader loader(dataset, {.batch = batch, .transforms = normalization(data)});
  Evaluator evaluator(model, {.loss = loss,
                              .output = arguments.loss.output,
                              .device = arguments.compute.device,
                              .fallback = arguments.compute.fallback});
  for (const std::string& name : arguments.metrics) evaluator.add_metric(metric_from_name(name));
  ProgressBar bar(!verbosity().quiet);
  const Evaluation result = evaluator.run(loader, bar.counting("eval", loader));
  bar.clear();
  if (!std::isfinite(result.loss)) {
    fail(ErrorKind::numeric, "the loss is ", result.loss,
         "; look for values in the data or the weights that are not finite");
  }
  if (arguments.json) {
    nlohmann::ordered_json line{{"loss", result.loss}};
    if (result.accuracy) line["accuracy"] = *result.accuracy;
    for (const auto& [name, value] : result.metrics) line[name] = value;
    line["samples"] = result.samples;
    line["loss_name"] = loss.name;
    print_json(line);
    return ok;
  }
  std::cout << loss.name << ' ' << fixed(result.loss, 4);
  if (result.accuracy) std::cout << "  accuracy " << percent(*result.accuracy);
  for (const auto& [name, value] : result.metrics)
    std::cout << "  " << name << ' ' << fixed(value, 4);
  std::cout << "  samples " << with_commas(result.samples) << '\n';
  return ok;
}

}  // namespace

Run add_eval(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  add_arguments(app, arguments->data);
  {
    const OptionGroup group(app, "Data");
    limit_to(
        *app.add_option("--split", arguments->split, "part of the data")->capture_default_str(),
        {"train", "test"});
  }
  add_arguments(app, arguments->loss);
  add_metrics_argument(app, arguments->metrics);
  add_arguments(app, arguments->compute);
  app.add_flag("--json", arguments->json, "print a JSON line");
  return [arguments] { return evaluate(*arguments); };
}

}  // namespace graft::cli
