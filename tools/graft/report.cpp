#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>

#include "autograd/joint_loss.h"
#include "core/layers/output_types.h"
#include "data/loader.h"
#include "graft/version.h"
#include "io/file.h"
#include "io/onnx.h"
#include "tools/graft/arguments.h"
#include "tools/graft/file_notes.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/numbers.h"
#include "tools/graft/options.h"
#include "tools/graft/profile.h"
#include "tools/graft/report_page.h"
#include "tools/graft/run_record.h"
#include "tools/graft/train_arguments.h"
#include "tools/graft/verb.h"
#include "train/compile.h"
#include "train/train_step.h"

namespace graft::cli {
namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
  bool only_record = false;
  ComputeArguments compute;
};

/// The data that the run was measured on, or else those that it trained on.
struct RunData {
  DataArguments arguments;
  std::string spec;
  Split split = Split::test;
  std::shared_ptr<Dataset> dataset;
};

/// The setting where it is a whole number above 0, else `preset`.
std::int64_t count_in(const RunRecord& run, const char* key, std::int64_t preset) {
  const std::optional<std::int64_t> value = number_in<std::int64_t>(run.setting(key));
  return value && *value > 0 ? *value : preset;
}

LossArguments loss_arguments_of(const RunRecord& run) {
  const std::string name = run.setting("loss");
  return {.name = name.empty() ? "auto" : name, .output = run.setting("output")};
}

RunData open_data_of(const RunRecord& run, const Model& model) {
  RunData data;
  data.arguments.spec = run.setting("data");
  data.arguments.normalize = run.setting("normalize");
  data.arguments.resize = run.setting("resize");
  data.arguments.batch = count_in(run, "batch", data.arguments.batch);
  data.arguments.limit = count_in(run, "limit", 0);
  const std::string validate = run.setting("validate");
  data.spec = validate.empty() || validate == "none" ? data.arguments.spec : validate;
  if (data.spec.empty()) fail(ErrorKind::io, "config.json does not say what data the run used");
  if (!has_test_split(data.spec) || validate == "none") data.split = Split::train;
  data.dataset =
      open(data.arguments, data.spec, data.split, wanted_types(model, loss_arguments_of(run)));
  return data;
}

Loss loss_of(const RunRecord& run, const Model& model, const Dataset& dataset) {
  return choose_loss(loss_arguments_of(run), model, dataset);
}

/// Where the time of a training step goes. `model`: one that may be trained.
std::string profile_of(const RunRecord& run, Model model, const RunData& data, const Loss& loss,
                       const ComputeArguments& compute) {
  constexpr int kRuns = 5;
  TrainOptions options;
  options.loss = loss;
  constexpr float kAny = 0.01F;  // of no matter for the time
  options.optimizer = make_optimizer({.name = run.setting("optimizer")}, kAny, kAny);
  options.output = run.setting("output");
  options.total_updates = 2 * kRuns;
  options.device = compute.device;
  options.fallback = compute.fallback;
  TrainStep step(model, options);
  DataLoader loader(data.dataset,
                    {.batch = data.arguments.batch, .transforms = normalization(data.arguments)});
  const auto first = loader.begin();
  step.run(first->inputs, targets_of(*first));
  step.set_profiling(true);
  for (int i = 0; i < kRuns; ++i) step.run(first->inputs, targets_of(*first));
  std::ostringstream table;
  print_profile(table, step.profile(), kRuns);
  return table.str();
}

/// What cannot be computed becomes a note in the report: the record is worth a look without it.
template <class Part>
void attempt(RunSection& section, const char* what, Part part) {
  try {
    part();
  } catch (const Error& error) {
    section.notes.push_back(text(what, ": ", error.what()));
  }
}

/// Values get the types that inference finds.
Model with_types(Model model) {
  const std::map<std::string, ValueType> types = edit::value_types(model);
  for (const auto& node : model.graph().nodes()) {
    for (int i = 0; i < node->output_count(); ++i) {
      const auto found = types.find(node->output(i)->name());
      if (found != types.end()) node->output(i)->set_type(found->second);
    }
  }
  return model;
}

RunSection examine_run(const RunRecord& run, const ComputeArguments& compute) {
  RunSection section{.run = run};
  attempt(section, "no model", [&] {
    const std::string path = run.setting("out");
    if (path.empty()) fail(ErrorKind::io, "config.json does not say where it was written");
    const Model model = onnx::load(path);
    section.net = with_types(newest_form(model));
    RunData data = open_data_of(run, model);
    const Loss loss = loss_of(run, model, *data.dataset);
    section.data = data.dataset;
    section.class_names = class_names_of(model);
    if (section.class_names.empty()) section.class_names = data.dataset->info().class_names;
    section.data_name = text(data.spec, ", ", name(data.split));
    attempt(section, "no confusion matrix", [&] {
      constexpr std::size_t kPictures = 24;
      const std::string output = loss.parts.empty() ? run.setting("output") : loss.outputs.front();
      section.judgement =
          judge(model, data.dataset, part_of(loss, 0), output, normalization(data.arguments),
                data.arguments.batch, kPictures, compute);
    });
    attempt(section, "no step profile",
            [&] { section.profile = profile_of(run, onnx::load(path), data, loss, compute); });
  });
  return section;
}

ExitCode report(const ReportArguments& arguments) {
  apply(arguments.compute);
  std::vector<RunSection> sections;
  for (const std::string& folder : arguments.runs) {
    RunRecord run = read_run(folder);
    if (arguments.only_record) {
      sections.push_back({.run = std::move(run)});
    } else {
      sections.push_back(examine_run(run, arguments.compute));
    }
  }
  const std::filesystem::path out = arguments.out.empty()
                                        ? sections.front().run.folder / "report.html"
                                        : std::filesystem::path(arguments.out);
  const std::string page = report_page(sections);
  write_file(out, page);
  std::cout << "wrote " << out.string() << ": " << bytes_text(page.size()) << '\n';
  for (const RunSection& section : sections) {
    for (const std::string& note : section.notes) {
      std::cerr << "graft: " << section.run.name << ": " << note << '\n';
    }
  }
  return ok;
}

}  // namespace

Run add_report(CLI::App& app) {
  const auto arguments = std::make_shared<ReportArguments>();
  app.add_option("RUN", arguments->runs, "folders that graft train wrote; several side by side")
      ->required();
  app.add_option("--out,-o", arguments->out, "the page to write (default: report.html in the run)")
      ->type_name("FILE");
  app.add_flag("--only-record", arguments->only_record,
               "show what the run wrote down, measure nothing");
  add_arguments(app, arguments->compute);
  return [arguments] { return report(*arguments); };
}

}  // namespace graft::cli
