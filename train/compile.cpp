// The order in which a step comes to be: lists of passes (core/passes/pipeline.cpp) and, between
// them, what the step adds to the graph (train/step_builder.cpp).
#include "train/compile.h"

#include <algorithm>

#include "core/passes/pipeline.h"
#include "core/runtime/residency.h"
#include "train/judged.h"
#include "train/trainable.h"

namespace graft {
namespace {

void refuse_repeats(std::vector<std::string> parameters) {
  std::ranges::sort(parameters);
  if (const auto twice = std::ranges::adjacent_find(parameters); twice != parameters.end()) {
    fail(ErrorKind::argument, "parameter '", *twice, "' is named twice");
  }
}

/// Marks what changes between runs, beside the statistics that train_mode marks.
void mark_variables(TrainableModel& made, const TrainOptions& options) {
  Graph& graph = made.model.graph();
  const Graph* const file = &made.file.graph();
  refuse_repeats(options.parameters);
  std::vector<std::string> names = options.parameters;
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::find(made.trained.ties, name, &Tie::follower) != made.trained.ties.end();
  });
  if (options.trainable.empty() && options.freeze.empty() && names.empty()) {
    // Statistics follow the batches there too.
    for (Value* value : scales_without_parameters(graph, file)) value->is_variable = true;
  }
  for (Value* value :
       choose_trainable(graph, {options.trainable, options.freeze, std::move(names), file})) {
    value->is_variable = true;
    made.trained.parameters.push_back(value->name());
  }
}

/// A trained Constant must hold the tensor that training changes: other spellings of its value
/// (value_floats, say) become a tensor attribute.
void share_with_constant(Graph& graph, const Value& parameter) {
  const Value* const value = graph.find(parameter.name());
  Node* const node = value == nullptr ? nullptr : value->producer();
  if (node == nullptr || !node->is("Constant")) return;
  const Tensor& tensor = parameter.initializer();
  if (node->attributes.has("value") &&
      node->attributes.get_tensor("value").data() == tensor.data()) {
    return;
  }
  node->attributes = {{"value", tensor}};
}

/// Brings what the step changes to `target`: beside the variables, running statistics, which nobody
/// could share once a plan is made, and followers.
void place(TrainableModel& made, const HostCopies& host_copies, Device& target) {
  Graph& graph = made.model.graph();
  if (&target == &cpu() && host_copies.empty()) return;
  for (Value* value : running_statistics(graph)) value->is_variable = true;
  for (const Tie& tie : made.trained.ties) graph.find(tie.follower)->is_variable = true;
  host_copies.give_back_all(made.file.graph());
  host_copies.give_back_variables(graph);
  place_variables(graph, target, made.file.graph());
  for (Tie& tie : made.trained.ties) {
    tie.follower_content = graph.find(tie.follower)->initializer();
  }
}

}  // namespace

Model newest_form(const Model& model, const std::function<void(Graph&)>& mark_variables) {
  Model newest = model.clone();
  const HostCopies host_copies(newest.graph());
  passes::PassContext context{
      .device = cpu(), .purpose = passes::Purpose::evaluation, .model = &newest};
  passes::run_passes(passes::kNewestForm, newest.graph(), context);
  if (mark_variables) mark_variables(newest.graph());
  host_copies.give_back_variables(newest.graph());
  return newest;
}

TrainableModel prepare_training(const Model& model, const TrainOptions& options,
                                passes::PassLog* log) {
  TrainableModel made;
  made.file = model.clone();
  const HostCopies host_copies(made.file.graph());
  separate_parameters(made.file.graph());
  made.model = made.file.clone();
  passes::PassContext context{
      .device = cpu(), .purpose = passes::Purpose::training, .model = &made.model, .log = log};
  passes::run_passes(passes::kNewestForm, made.model.graph(), context);
  choose_outputs(made.model.graph(), options.loss, options.output);  // throws if it cannot
  made.trained.ties = tie_initializers(made.model.graph(), options.tied);
  mark_variables(made, options);
  made.trained.updates = group_updates(made.model.graph(), made.trained.parameters, options);
  place(made, host_copies, device(options.device));
  return made;
}

void check_defined(std::span<const Tensor> inputs, std::span<const Tensor> targets) {
  const auto check = [](std::span<const Tensor> tensors, std::string_view what) {
    const auto at = std::ranges::find_if_not(tensors, &Tensor::defined);
    if (at == tensors.end()) return;
    fail(ErrorKind::argument, what, ' ', at - tensors.begin(),
         " of the batch is undefined, wanted a tensor");
  };
  check(inputs, "input");
  check(targets, "target");
}

void share_with_file(const TrainableModel& trainable, Model& model) {
  separate_parameters(model);
  const std::vector<Value*>& ours = trainable.file.graph().initializers();
  const std::vector<Value*>& theirs = model.graph().initializers();
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const Tensor& tensor = ours[i]->initializer();
    if (theirs[i]->initializer().data() != tensor.data()) theirs[i]->set_initializer(tensor);
  }
  for (const std::string& name : trainable.trained.parameters) {
    share_with_constant(model.graph(), *trainable.model.graph().find(name));
  }
}

namespace {

/// The CPU has no TF32.
Precision precision_on(const TrainOptions& options) {
  const bool is_cpu = device(options.device).kind() == DeviceKind::cpu;
  return is_cpu && options.precision == Precision::tf32 ? Precision::f32 : options.precision;
}

}  // namespace

constexpr StepForm kPlannedStep{passes::kTrainingForm, passes::kForwardWithLoss,
                                passes::kWholeStep};

CompiledGraph compile_graph(const Model& model, const TrainOptions& options,
                            const CompileRequest& request) {
  const bool trains = request.kind != StepKind::evaluate;
  StepBuilder step(model, options, request.inputs.size(), request.targets.size());
  Graph& graph = step.graph();
  passes::PassContext context{
      .device = device(options.device),
      .purpose = trains ? passes::Purpose::training : passes::Purpose::evaluation,
      .precision = trains ? precision_on(options) : Precision::f32,
      .seed = options.seed,
      .frozen = request.trained.updates.frozen(request.updates),
      .input_types = step.input_types(request.inputs, request.targets),
      .log = request.log};
  const auto add = [&](std::string_view name, const std::function<void()>& stage) {
    passes::run_stage(name, graph, context, [&] {
      stage();
      return true;
    });
  };
  passes::run_passes(passes::kStepShapes, graph, context);
  step.refuse_open_shapes();
  passes::run_passes(request.form->training_form, graph, context);
  if (trains && step.add_masters(*request.state))
    passes::run_passes(passes::kSettle, graph, context);
  add("add_loss", [&] { step.add_loss(request.targets); });
  passes::run_passes(request.form->forward, graph, context);
  if (trains) {
    std::vector<std::string> parameters = request.trained.parameters;
    std::erase_if(parameters, [&](const std::string& name) {
      return std::ranges::find(context.frozen, name) != context.frozen.end();
    });
    add("add_gradients", [&] { step.add_gradients(parameters); });
    add("add_updates", [&] { step.add_updates(request.kind, request.trained, *request.state); });
  }
  if (request.form->returns_variables) add("return_variables", [&] { step.return_variables(); });
  bool counts = options.counts_correct && context.device.kind() != DeviceKind::cpu;
  if (counts) add("count_correct", [&] { counts = step.count_correct(); });
  passes::run_passes(request.form->whole, graph, context);
  CompiledGraph result{
      step.take_graph(), {"loss", "prediction"}, step.judged(), step.classes(), counts};
  const std::vector<std::string>& more = step.further_outputs();
  result.outputs.insert(result.outputs.end(), more.begin(), more.end());
  return result;
}

Compiled compile(const Model& model, const TrainOptions& options, const CompileRequest& request) {
  CompiledGraph built = compile_graph(model, options, request);
  PlanOptions plan{.device = &device(options.device),
                   .fallback = options.fallback,
                   .records = options.records,
                   .starts = true,
                   .poison = options.poison,
                   .debug_nan = options.debug_nan,
                   .constants = request.constants,
                   .log = request.log};
  if (request.kind != StepKind::evaluate) {
    // adr/0011: below, the process itself takes as much.
    constexpr double kShareWorthItsMemory = 0.05;
    constexpr std::size_t kAmpleBytes = 64'000'000;
    plan.memory_budget = options.memory_budget;
    plan.repeated_share = kShareWorthItsMemory;
    plan.ample_bytes = kAmpleBytes;
  }
  return {Plan(std::move(built.graph), plan), std::move(built.outputs), std::move(built.classes),
          built.counts_correct};
}

}  // namespace graft
