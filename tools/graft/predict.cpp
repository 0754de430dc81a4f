#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "core/base/at.h"
#include "core/passes/pass.h"
#include "core/runtime/session.h"
#include "io/onnx.h"
#include "tools/graft/arguments.h"
#include "tools/graft/class_names.h"
#include "tools/graft/file_notes.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/judge.h"
#include "tools/graft/options.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

struct PredictArguments {
  std::string model;
  DataArguments data;
  std::string output;
  std::string split = "test";
  std::int64_t top = 1;
  ComputeArguments compute;
  bool json = false;
};

/// NaN for all where one of the scores is not finite.
std::vector<double> finite_probabilities(std::span<const double> scores) {
  const bool are_finite = std::ranges::all_of(scores, [](double s) { return std::isfinite(s); });
  if (are_finite) return probabilities(scores);
  return std::vector<double>(scores.size(), std::numeric_limits<double>::quiet_NaN());
}

/// Prints a sample's best classes.
class Printer {
 public:
  Printer(const PredictArguments& arguments, std::vector<std::string> names)
      : arguments_(arguments), names_(std::move(names)) {}

  /// `label`: the data's class; below 0 where they have none.
  void print(std::int64_t sample, std::span<const double> scores, std::int64_t label) const {
    const std::vector<double> shares = finite_probabilities(scores);
    std::vector<std::int64_t> best(shares.size());
    std::iota(best.begin(), best.end(), 0);
    std::ranges::stable_sort(best, std::ranges::greater{},
                             [&](std::int64_t c) { return at(shares, c); });
    best.resize(std::min(best.size(), static_cast<std::size_t>(arguments_.top)));
    if (arguments_.json) return print_line(sample, shares, best, label);
    std::cout << sample;
    if (std::isnan(shares.front())) {
      std::cout << "  the scores are not finite\n";
      return;
    }
    for (const std::int64_t c : best) {
      std::cout << "  " << name_of_class(names_, shares.size(), c) << ' ' << percent(at(shares, c));
    }
    if (label >= 0 && label != best.front()) {
      std::cout << "  wrong: " << name_of_class(names_, shares.size(), label);
    }
    std::cout << '\n';
  }

 private:
  void print_line(std::int64_t sample, const std::vector<double>& shares,
                  const std::vector<std::int64_t>& best, std::int64_t label) const {
    nlohmann::ordered_json line{{"sample", sample}};
    for (const std::int64_t c : best) {
      line["best"].push_back({{"class", c},
                              {"name", name_of_class(names_, shares.size(), c)},
                              {"probability", at(shares, c)}});
    }
    if (label >= 0) line["label"] = label;
    print_json(line);
  }

  const PredictArguments& arguments_;
  std::vector<std::string> names_;
};

ExitCode predict(const PredictArguments& arguments) {
  apply(arguments.compute);
  const Model model = onnx::load(arguments.model);
  const std::string output = arguments.output.empty() ? noted_output(model) : arguments.output;
  DataArguments data = arguments.data;
  complete_data(model, data);
  const auto dataset =
      open(data, data.spec, arguments.split == "train" ? Split::train : Split::test,
           wanted_types(model, output));
  say_conflicts(model, dataset->info());
  const std::vector<std::string> in_file = class_names_of(model);
  const Printer printer(arguments, in_file.empty() ? dataset->info().class_names : in_file);
  if (is_float(dataset->info().target.dtype) && in_file.empty()) {
    fail(ErrorKind::unsupported, "predict names classes, the targets of ", data.spec,
         " are numbers; graft run writes a model's numbers to files, graft eval measures them");
  }
  check_inputs_fit(passes::required_inputs(model.graph()), dataset->info(), data.batch);
  const bool has_labels = dataset->info().classes > 0;
  DataLoader loader(dataset, {.batch = data.batch, .transforms = normalization(data)});
  Session session(
      model, {.device = &device(arguments.compute.device), .fallback = arguments.compute.fallback});
  const std::size_t judged = index_of_output(session, output);
  std::int64_t sample = 0;
  for (const Batch& batch : loader) {
    const Tensor scores = session.run(batch.inputs)[judged];
    if (scores.rank() != 2 || !is_float(scores.dtype()) || scores.shape()[0] != batch.size ||
        scores.shape()[1] < 2) {
      fail(ErrorKind::unsupported,
           "predict names the best of scores [N,C] of two classes or more, output '",
           session.output_names()[judged], "' is ", describe(scores),
           "; graft run writes whole outputs to files");
    }
    const std::vector<double> rows = to_double(scores);
    const auto classes = static_cast<std::size_t>(scores.shape()[1]);
    for (std::int64_t i = 0; i < batch.size; ++i, ++sample) {
      const std::int64_t label =
          has_labels ? batch.target.values<const std::int64_t>()[static_cast<std::size_t>(i)] : -1;
      printer.print(sample, {&rows[static_cast<std::size_t>(i) * classes], classes}, label);
    }
  }
  return ok;
}

}  // namespace

Run add_predict(CLI::App& app) {
  const auto arguments = std::make_shared<PredictArguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  add_arguments(app, arguments->data);
  add_split_argument(app, arguments->split);
  app.add_option("--output", arguments->output,
                 "the output with the classes' scores (default: as trained, else the first)");
  app.add_option("--top", arguments->top, "classes to print of each sample")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  add_arguments(app, arguments->compute);
  app.add_flag("--json", arguments->json, "print a JSON line a sample");
  return [arguments] { return predict(*arguments); };
}

}  // namespace graft::cli
