#include "train/step_model.h"

#include <algorithm>

#include "core/layers/change_opset.h"
#include "core/ops/opset.h"
#include "core/passes/pipeline.h"
#include "train/check_options.h"
#include "train/compile.h"
#include "train/repeat_step.h"

namespace graft {
namespace {

constexpr StepForm kExportedForm{passes::kExportedTrainingForm, passes::kExportedForward,
                                 passes::kExportedStep, true};

constexpr std::size_t kFirstVariable = 2;  // behind loss and prediction

/// Lets the graph take a variable's content from outside.
void make_input(Graph& graph, Value* variable) {
  const std::string name = variable->name();
  graph.rename(variable, graph.unique_name(name + ".initial"));
  Value* const input = graph.add_input(name, variable->type());
  graph.replace_all_uses(variable, input);
  graph.remove_initializer(variable);
}

/// Other runtimes name what they make of a node after it or its output, the bias of a convolution
/// "conv1.bias" say, which must not be the name of an input.
void free_names(Graph& graph) {
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::any_of(
        graph.inputs(), [&](const Value* input) { return input->name().starts_with(name + '.'); });
  };
  for (const auto& node : graph.nodes()) {
    if (is_taken(node->name())) node->set_name("");
    for (int i = 0; i < node->output_count(); ++i) {
      Value* const output = node->output(i);
      if (output == nullptr || output->is_graph_output() || !is_taken(output->name())) continue;
      graph.rename(output, graph.unique_name(output->name() + "_y"));
    }
  }
}

/// `opset`: as in StepFormat.
Model to_model(const Model& origin, std::unique_ptr<Graph> graph, std::int64_t opset) {
  Model model;
  model.domain = origin.domain;
  model.set_opset("", oldest_opset(*graph));
  model.set_graph(std::move(graph));
  if (opset != 0) edit::change_opset(model, opset);
  free_names(model.graph());
  return model;
}

Model make_step(const TrainableModel& trainable, const TrainOptions& options,
                const CompileRequest& request, std::int64_t opset,
                std::vector<StepVariable>& variables) {
  CompiledGraph built = compile_graph(trainable.model, options, request);
  Graph& graph = *built.graph;
  graph.rename(graph.outputs()[0], graph.unique_name("loss"));
  for (std::size_t i = kFirstVariable; i < built.outputs.size(); ++i) {
    const std::string& name = built.outputs[i];
    const std::string next = graph.unique_name(name + ".next");
    graph.rename(graph.outputs()[i], next);
    Value* const variable = graph.find(name);
    const bool is_parameter =
        std::ranges::find(trainable.trained.parameters, name) != trainable.trained.parameters.end();
    variables.push_back({name, next, variable->initializer(), is_parameter});
    make_input(graph, variable);
  }
  return to_model(trainable.model, std::move(built.graph), opset);
}

Model make_evaluation(const TrainableModel& trainable, const TrainOptions& options,
                      const CompileRequest& request, std::int64_t opset,
                      const std::vector<StepVariable>& variables) {
  Model newest = newest_form(trainable.file);
  for (const StepVariable& variable : variables) {
    if (Value* const value = newest.graph().find(variable.name)) value->is_variable = true;
  }
  CompiledGraph built = compile_graph(newest, options,
                                      {.kind = StepKind::evaluate,
                                       .inputs = request.inputs,
                                       .targets = request.targets,
                                       .form = &kExportedForm});
  Graph& graph = *built.graph;
  graph.rename(graph.outputs()[0], graph.unique_name("loss"));
  for (const StepVariable& variable : variables) {
    if (Value* const value = graph.find(variable.name)) make_input(graph, value);
  }
  return to_model(trainable.model, std::move(built.graph), opset);
}

}  // namespace

StepModel export_step(const Model& model, const TrainOptions& options,
                      const std::vector<ValueType>& inputs, const ValueType& target,
                      const StepFormat& format) {
  if (format.steps < 1) {
    fail(ErrorKind::argument, "one call makes ", format.steps, " steps, wanted at least 1");
  }
  check(options);
  if (!options.optimizer) {
    fail(ErrorKind::argument,
         "the options have no optimizer, wanted one: a step that is exported "
         "makes an update");
  }
  if (options.accumulate > 1) {
    fail(ErrorKind::unsupported, "accumulate is ", options.accumulate,
         ": an exported step makes an update of each batch; leave it out");
  }
  const TrainableModel trainable = prepare_training(model, options);
  if (trainable.trained.updates.clocks.size() > 1) {
    fail(ErrorKind::unsupported,
         "an exported step has one input for the rate: leave out groups "
         "with a rate, a schedule or a start of their own");
  }
  StateTensors state;
  const CompileRequest request{.kind = StepKind::update,
                               .inputs = inputs,
                               .targets = {target},
                               .trained = trainable.trained,
                               .state = &state,
                               .form = &kExportedForm};
  StepModel made;
  made.step = make_step(trainable, options, request, format.opset, made.variables);
  made.evaluation = make_evaluation(trainable, options, request, format.opset, made.variables);
  made.target = made.step.graph().inputs().at(inputs.size())->name();
  if (format.steps > 1) repeat_step(made.step, format.steps, made.variables.size());
  return made;
}

}  // namespace graft
