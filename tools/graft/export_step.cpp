#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "io/file.h"
#include "io/onnx.h"
#include "io/safetensors.h"
#include "tools/graft/arguments.h"
#include "tools/graft/cost.h"
#include "tools/graft/export_step_files.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/train_arguments.h"
#include "tools/graft/verb.h"
#include "train/compile.h"
#include "train/step_model.h"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct ExportStepArguments {
  std::string model;
  LossArguments loss;
  OptimizerArguments optimizer;
  std::int64_t batch = 32;
  StepFormat format;
  ParameterArguments parameters;
  std::string out;
};

TrainOptions options_of(const ExportStepArguments& arguments) {
  if (arguments.optimizer.state_precision != StatePrecision::f32) {
    fail(ErrorKind::unsupported,
         "--state-precision bf16: the loops beside an exported step have no bf16; leave it out");
  }
  TrainOptions options;
  options.loss = choose_loss(arguments.loss);
  options.optimizer = make_optimizer(arguments.optimizer, SGD{}.lr, SGD{}.momentum);
  options.groups = make_groups(arguments.optimizer);
  options.output = arguments.loss.output;
  options.trainable = arguments.parameters.trainable;
  options.freeze = arguments.parameters.freeze;
  options.tied = arguments.parameters.tied;
  return options;
}

/// One batch of the model's inputs, and the target that fits its output.
struct BatchTypes {
  std::vector<ValueType> inputs;
  ValueType target;
};

BatchTypes batch_types(const ExportStepArguments& arguments, const Model& model, const Loss& loss) {
  const Model newest = newest_form(model);
  std::string missing;
  const auto types = bound_types(newest.graph(), arguments.batch, &missing);
  if (!types) {
    fail(ErrorKind::shape, "the shape of input ", missing,
         " is not known beside its batch; write it into the model first");
  }
  const std::unique_ptr<Graph> graph = bound_graph(newest, *types);
  const Value* prediction = graph->outputs().front();
  for (const Value* output : graph->outputs()) {
    if (output->name() == arguments.loss.output) prediction = output;
  }
  return {*types, target_type(loss, prediction->type())};
}

Json value_json(const Value& value) {
  return {{"name", value.name()},
          {"type", std::string(name(value.dtype()))},
          {"shape", value.known_shape().dims()}};
}

/// What a loop has to know of the step: step.json.
Json step_json(const StepModel& made, const Optimizer& optimizer, std::int64_t steps,
               std::size_t batch_inputs) {
  const Graph& graph = made.step.graph();
  Json inputs = Json::array();
  for (std::size_t i = 0; i < batch_inputs; ++i) inputs.push_back(value_json(*graph.inputs()[i]));
  Json variables = Json::array();
  for (const StepVariable& variable : made.variables) {
    variables.push_back({{"name", variable.name},
                         {"next", variable.next},
                         {"is_parameter", variable.is_parameter}});
  }
  return {{"inputs", inputs},
          {"target", value_json(*graph.inputs()[batch_inputs])},
          {"steps", steps},
          {"lr", learning_rate(optimizer)},
          {"loss", graph.outputs()[0]->name()},
          {"prediction", graph.outputs()[1]->name()},
          {"variables", variables}};
}

void write_folder(const fs::path& folder, const StepModel& made, const Json& description) {
  make_folder(folder);
  safetensors::Content initial;
  for (const StepVariable& variable : made.variables) {
    initial.tensors.push_back({variable.name, variable.initial});
  }
  safetensors::save(folder / "initial.safetensors", initial);
  write_file(folder / "step.json", description.dump(1) + "\n");
  for (const auto& [name, content] : step_loops()) write_file(folder / name, content);
  save_model(made.evaluation, folder / "eval.onnx");
  save_model(made.step, folder / "step.onnx");
}

/// Those of bodies too.
std::int64_t count_nodes(const Graph& graph) {
  std::int64_t count = 0;
  for (const auto& node : graph.nodes()) {
    ++count;
    for_each_body(*node, [&](const Graph& body) { count += count_nodes(body); });
  }
  return count;
}

ExitCode export_step(const ExportStepArguments& arguments) {
  const Model model = onnx::load(arguments.model);
  const TrainOptions options = options_of(arguments);
  const BatchTypes types = batch_types(arguments, model, options.loss);
  const StepFormat& format = arguments.format;
  const StepModel made = graft::export_step(model, options, types.inputs, types.target, format);
  write_folder(arguments.out, made,
               step_json(made, *options.optimizer, format.steps, types.inputs.size()));
  std::cout << "wrote " << arguments.out
            << "/step.onnx: " << (format.steps > 1 ? text(format.steps, " steps a call, ") : "")
            << with_commas(count_nodes(made.step.graph())) << " nodes of opset "
            << made.step.opset() << ", " << made.variables.size()
            << " variables; README.md there says how to run it\n";
  return ok;
}

}  // namespace

Run add_export_step(CLI::App& app) {
  const auto arguments = std::make_shared<ExportStepArguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  app.add_option("--out,-o", arguments->out, "the folder to write")->required()->type_name("DIR");
  add_arguments(app, arguments->loss);
  add_arguments(app, arguments->optimizer);
  app.add_option("--batch,--batch-size", arguments->batch, "samples in a batch")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  app.add_option("--steps", arguments->format.steps,
                 "steps that one call makes; above 1 batches get a first axis of that length")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--opset", arguments->format.opset,
                 "write the nodes in the forms of this version of ONNX's ops, from 13 on; left "
                 "out: the oldest that has them all")
      ->type_name("N");
  add_arguments(app, arguments->parameters);
  return [arguments] { return export_step(*arguments); };
}

}  // namespace graft::cli
