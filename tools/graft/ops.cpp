#include <CLI/CLI.hpp>
#include <iostream>
#include <set>

#include "core/graph/edit.h"
#include "core/ops/chosen.h"
#include "core/passes/pass_watch.h"
#include "core/runtime/session.h"
#include "graft/version.h"
#include "io/onnx.h"
#include "io/op_forms.h"
#include "tools/graft/arguments.h"
#include "tools/graft/bench_data.h"
#include "tools/graft/train_arguments.h"
#include "tools/graft/verb.h"
#include "train/evaluator.h"

namespace graft::cli {
namespace {

struct OpsArguments {
  std::vector<std::string> models;
  bool inference = false;
  LossArguments loss;
  OptimizerArguments optimizer;
  std::optional<float> clip_norm;
  std::int64_t batch = 64;
};

Batch batch_of(const BenchData& data) {
  return {.inputs = data.tensors(),
          .target = data.targets.front(),
          .size = data.targets.front().shape()[0],
          .further_targets = {data.targets.begin() + 1, data.targets.end()}};
}

void try_training(const OpsArguments& arguments, Model& model, const Loss& loss,
                  const BenchData& data) {
  TrainOptions options;
  options.loss = loss;
  options.optimizer = make_optimizer(arguments.optimizer, SGD{}.lr, SGD{}.momentum);
  options.output = arguments.loss.output;
  options.device = "cpu";
  options.clip.norm = arguments.clip_norm;
  options.counts_correct = true;
  for (const int accumulate : {1, 2}) {
    options.accumulate = accumulate;
    TrainStep step(model, options);
    for (int i = 0; i < accumulate; ++i) step.run(data.tensors(), data.targets);
    Evaluator evaluator(model, {.loss = loss,
                                .output = arguments.loss.output,
                                .device = "cpu",
                                .parameters = step.parameter_names()});
    evaluator.run(batch_of(data));
  }
}

/// Trains and runs the model for a moment. What it looks up is remembered.
void try_model(const OpsArguments& arguments, const std::string& path, std::int64_t batch) {
  Model model = onnx::load(path);
  edit::set_batch(model, batch);
  const Loss loss = choose_loss(arguments.loss);
  const BenchDataArguments asked{.batch = batch, .output = arguments.loss.output};
  const BenchData data = make_bench_data(asked, model, arguments.inference ? nullptr : &loss);
  if (!arguments.inference) try_training(arguments, model, loss, data);
  Session(model).run_data(data.inputs);
}

void collect_ops(const Graph& graph, std::set<std::string>& ops) {
  for (const auto& node : graph.nodes()) {
    if (node->domain().empty()) ops.insert(node->op_type());
    for_each_body(*node, [&](const Graph& body) { collect_ops(body, ops); });
  }
}

std::set<std::string> ops_in_files(const std::vector<std::string>& paths) {
  std::set<std::string> ops;
  for (const std::string& path : paths) {
    const Model model = onnx::load(path);
    collect_ops(model.graph(), ops);
    for (const Function& function : model.functions) collect_ops(*function.body, ops);
  }
  return ops;
}

ExitCode list_ops(const OpsArguments& arguments) {
  if (!chosen_models().empty()) {
    fail(ErrorKind::unsupported, "this graft has the ops of ", chosen_models(),
         " alone and cannot tell what other models need; wanted one built without GRAFT_MODELS");
  }
  remember_lookups();
  const passes::PassWatch watch;
  for (const std::string& path : arguments.models) {
    for (const std::int64_t batch : {std::int64_t{1}, arguments.batch})
      try_model(arguments, path, batch);
  }
  std::cout << "# What GRAFT_MODELS links, by graft " << kVersion << " ops.\n";
  for (const std::string& file : files_looked_up()) std::cout << "file " << file << '\n';
  for (const DType dtype : dtypes_looked_up()) std::cout << "dtype " << name(dtype) << '\n';
  for (const std::string_view pass : watch.changed()) std::cout << "pass " << pass << '\n';
  for (const std::string& op : ops_in_files(arguments.models)) {
    for (const std::string& form : onnx::op_forms(op)) std::cout << "op " << form << '\n';
  }
  return ok;
}

}  // namespace

Run add_ops(CLI::App& app) {
  const auto arguments = std::make_shared<OpsArguments>();
  app.add_option("MODEL", arguments->models, "ONNX files")->required();
  app.add_flag("--inference", arguments->inference, "what running needs (default: training too)");
  add_arguments(app, arguments->loss);
  add_arguments(app, arguments->optimizer);
  app.add_option("--clip-norm", arguments->clip_norm,
                 "gradients are clipped by their norm together");
  app.add_option("--batch,--batch-size", arguments->batch, "the largest batch; 1 is tried too")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  for (const char* option : {"--loss", "--output", "--optimizer", "--lr", "--momentum",
                             "--weight-decay", "--nesterov", "--state-precision", "--clip-norm"}) {
    app.get_option(option)->excludes(app.get_option("--inference"));  // of training
  }
  return [arguments] { return list_ops(*arguments); };
}

}  // namespace graft::cli
