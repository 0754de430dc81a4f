#include "tools/graft/findings.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "core/base/closest.h"
#include "core/graph/print.h"
#include "core/layers/batch.h"
#include "core/ops/registry.h"
#include "core/passes/microsoft.h"
#include "core/passes/pass.h"
#include "core/passes/pipeline.h"
#include "io/onnx.h"
#include "tools/graft/trainability.h"
#include "train/compile.h"
#include "train/trainable.h"

namespace graft::cli {
namespace {

/// Whether the model has a body for the op: its own function's, or the standard's.
bool has_function(const Model& model, const Node& node) {
  const auto is_it = [&](const Function& function) {
    return node.op_type() == function.name &&
           (node.domain() == function.domain ||
            (node.domain().empty() && function.domain == "ai.onnx"));
  };
  return std::ranges::any_of(model.functions, is_it) ||
         std::ranges::any_of(model.standard_functions, is_it);
}

void count_ops(const Graph& graph, Findings& found) {
  for (const auto& node : graph.nodes()) {
    const std::string op = (node->domain().empty() ? "" : node->domain() + ".") + node->op_type();
    ++found.ops[op];
    if (OpRegistry::instance().find(*node) == nullptr && !passes::is_microsoft(*node) &&
        !has_function(found.model, *node)) {
      found.unknown_ops.push_back(node->label() + ": the op is not known to Graft");
    }
    for_each_body(*node, [&](const Graph& body) { count_ops(body, found); });
  }
}

/// Class indices for a prediction [N,C,...] with C > 1, numbers otherwise.
Loss assumed_loss(const std::string& name, const Value& output) {
  if (name != "auto") return loss_from_spec(name);
  const std::optional<SymShape>& shape = output.shape();
  const bool has_classes =
      shape && shape->rank() >= 2 && (*shape)[1].is_known() && (*shape)[1].value() > 1;
  if (!has_classes) return mse();
  return output.producer() != nullptr && output.producer()->is("LogSoftmax") ? nll()
                                                                             : cross_entropy();
}

/// Gives inputs the shapes that the command says.
void set_shapes(Graph& graph, const std::map<std::string, Shape>& shapes) {
  for (const auto& [name, shape] : shapes) {
    std::vector<std::string> names;
    bool found = false;
    for (Value* input : passes::required_inputs(graph)) {
      names.push_back(input->name());
      if (input->name() != name) continue;
      input->set_type({input->dtype(), SymShape(shape)});
      found = true;
    }
    if (!found) {
      fail(ErrorKind::argument, "--shape: no input is called '", name,
           "'; inputs are: ", quoted_list(names));
    }
  }
}

/// Throws if an input's shape and --batch differ on the batch.
void check_batch(const InspectArguments& arguments) {
  for (const auto& [name, shape] : arguments.shapes) {
    if (!arguments.batch || shape.rank() == 0 || shape[0] == *arguments.batch) continue;
    fail(ErrorKind::argument, "--shape says a batch of ", shape[0], " for input '", name,
         "', --batch ", *arguments.batch, "; leave out one of them");
  }
}

/// Why the file as it is cannot run so many samples, though its inputs leave the batch open; empty
/// where it can.
std::string why_not_batch(const Model& model, std::int64_t batch) {
  try {
    const Model newest = newest_form(model);
    if (auto types = bound_types(newest.graph(), batch)) bound_graph(newest, *std::move(types));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// "x=Nx3xH": what is known of an input's shape, and names for the rest.
std::string shape_to_say(const Value& input) {
  if (!input.shape()) return input.name() + "=SHAPE";
  std::string dims;
  for (const Dim& dim : *input.shape()) {
    std::string name = dim.is_known() ? std::to_string(dim.value()) : dim.symbol();
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    dims += (dims.empty() ? "" : "x") + (name.empty() ? "N" : name);
  }
  return input.name() + "=" + dims;
}

std::string shapes_to_say(const Graph& graph) {
  std::string options;
  for (const Value* input : passes::required_inputs(graph)) {
    if (input->shape() && input->shape()->known()) continue;
    options += (options.empty() ? "--shape " : " --shape ") + shape_to_say(*input);
  }
  return options;
}

/// The batch that the file or the command fixes; else 1.
std::int64_t fixed_batch(const Graph& graph) {
  for (const Value* input : passes::required_inputs(graph)) {
    if (!input->shape() || input->shape()->rank() == 0) continue;
    const Dim& first = (*input->shape())[0];
    if (first.is_known()) return first.value();
  }
  return 1;
}

std::string judged_output(const Graph& graph, const std::string& wanted) {
  std::vector<std::string> names;
  for (const Value* output : graph.outputs()) names.push_back(output->name());
  if (wanted.empty()) return names.empty() ? "" : names.front();
  if (std::ranges::find(names, wanted) != names.end()) return wanted;
  fail(ErrorKind::argument, "the model has no output '", wanted,
       "'; its outputs: ", quoted_list(names));
}

/// The graph in which gradients are looked for: of one batch where its shapes are known.
std::unique_ptr<Graph> gradient_graph(const Findings& found) {
  std::unique_ptr<Graph> graph = found.newest.graph().clone();
  passes::PassContext context{.device = cpu()};
  if (auto types = bound_types(*graph, found.batch)) {
    try {
      context.input_types = std::move(*types);
      passes::run_passes(passes::kStepShapes, *graph, context);
      return graph;
    } catch (const Error&) {  // said where costs are looked for
      graph = found.newest.graph().clone();
    }
  }
  passes::run_passes(passes::kOpenGradientPath, *graph, context);
  return graph;
}

void find_training(Findings& found) {
  passes::PassContext context{.device = cpu()};
  passes::run_passes(passes::kOpenGradientPath, found.newest.graph(), context);
  const Graph* const file = &found.separated.graph();
  for (const Value* value : default_trainable(found.newest.graph(), file)) {
    found.trainable.push_back(value);
  }
  for (const Value* value : found.newest.graph().initializers()) {
    const bool is_frozen = is_float(value->dtype()) && file->find(value->name()) != nullptr &&
                           std::ranges::find(found.trainable, value) == found.trainable.end();
    if (is_frozen) found.frozen.emplace_back(value, why_frozen(*value));
  }
  const std::unique_ptr<Graph> graph = gradient_graph(found);
  std::vector<const Value*> parameters;
  for (const Value* value : found.trainable) {
    if (const Value* const own = graph->find(value->name())) parameters.push_back(own);
  }
  for (const Value* output : graph->outputs()) {
    found.blockers[output->name()] = what_stops_gradients(*graph, output, parameters);
  }
}

const Value& judged_value(const Graph& graph, const std::string& name) {
  const auto at = std::ranges::find(graph.outputs(), name, &Value::name);
  if (at == graph.outputs().end()) fail(ErrorKind::model, "output '", name, "' is not computed");
  return **at;
}

void find_costs(const InspectArguments& arguments, Findings& found) {
  std::string missing;
  const auto types = bound_types(found.newest.graph(), found.batch, &missing);
  if (!types) {
    found.shapes_to_say = shapes_to_say(found.newest.graph());
    found.obstacle =
        "the shape of input " + missing + " is not known; say it by " + found.shapes_to_say;
    return;
  }
  found.bound = bound_graph(found.newest, *types);
  found.macs = multiply_adds(*found.bound);
  if (found.trainable.empty() || found.judged.empty()) {
    found.obstacle = "there is nothing to train";
    return;
  }
  const Value& output = judged_value(*found.bound, found.judged);
  found.loss = assumed_loss(arguments.loss, output);
  if (!found.stops().empty()) {
    found.obstacle = "gradients are stopped";
    return;
  }
  const TrainOptions options{.loss = found.loss,
                             .optimizer = optimizer_from_name(arguments.optimizer),
                             .output = found.judged};
  found.memory = plan_step(found.separated, options, *types, target_type(found.loss, output.type()),
                           arguments.passes ? &found.training : nullptr);
}

void find_inference(Findings& found) {
  const auto types = bound_types(found.newest.graph(), found.batch);
  if (types) plan_inference(found.separated, *types, &found.inference);
}

}  // namespace

std::vector<std::string> Findings::stops() const {
  if (!unknown_ops.empty()) return unknown_ops;
  const auto at = blockers.find(judged);
  return at == blockers.end() ? std::vector<std::string>() : at->second;
}

bool Findings::can_train() const {
  return unknown_ops.empty() && !trainable.empty() &&
         std::ranges::any_of(blockers, [](const auto& output) { return output.second.empty(); });
}

Findings find(const InspectArguments& arguments) {
  if (arguments.loss != "auto") loss_from_spec(arguments.loss);
  optimizer_from_name(arguments.optimizer);
  check_batch(arguments);
  Findings found;
  found.model = onnx::load(arguments.model);
  found.judged = judged_output(found.model.graph(), arguments.output);
  count_ops(found.model.graph(), found);
  for (passes::PassLog* log : {&found.training, &found.inference}) {
    log->printed = arguments.passes.value_or("");
    log->print = [](const Graph& graph) { return print(graph); };
  }
  found.separated = found.model.clone();
  set_shapes(found.separated.graph(), arguments.shapes);
  found.batch = arguments.batch.value_or(fixed_batch(found.separated.graph()));
  if (!found.unknown_ops.empty()) {
    found.obstacle = "an op is not known";
    return found;
  }
  try {
    std::string why_not;
    if (arguments.batch) {
      why_not = why_not_batch(found.separated, *arguments.batch);
      edit::change_batch(found.separated, *arguments.batch);
    }
    separate_parameters(found.separated.graph());
    found.newest = newest_form(found.separated);
    find_training(found);
    found.advice = advise(found.model, found.newest.graph(), found.trainable);
    if (!why_not.empty()) {
      found.advice.push_back({text("the file as it is runs no batch of ", *arguments.batch, " (",
                                   why_not, "); the costs are those of a copy that does"),
                              "edit MODEL --batch any --out OUT"});
    }
    find_costs(arguments, found);
    if (arguments.passes) find_inference(found);
  } catch (const Error& error) {
    // A model that cannot be run or trained is still worth a look: that is what inspect is for.
    found.obstacle = error.what();
  }
  return found;
}

}  // namespace graft::cli
