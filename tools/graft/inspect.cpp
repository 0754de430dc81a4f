#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/graph/edit.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/passes/pipeline.h"
#include "io/onnx.h"
#include "tools/graft/cost.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/pass_table.h"
#include "tools/graft/trainability.h"
#include "tools/graft/verb.h"
#include "train/compile.h"
#include "train/trainable.h"

namespace graft::cli {
namespace {

struct Arguments {
  std::string model;
  std::optional<std::int64_t> batch;
  std::string loss = "auto";
  std::string optimizer = "sgd";
  /// Show what passes do; if not empty, the graph behind this one.
  std::optional<std::string> passes;
  bool json = false;
};

/// All that is found out; empty or absent where it cannot be.
struct Findings {
  Model model;
  std::map<std::string, std::int64_t> ops;
  std::vector<std::string> unknown_ops;
  std::vector<const Value*> trainable;  // of `newest`
  Model separated;                      // as it trains
  Model newest;
  std::vector<std::string> blockers;
  std::int64_t batch = 1;
  std::optional<std::int64_t> macs;
  Loss loss;
  std::optional<StepMemory> memory;
  /// Why costs are not known.
  std::string obstacle;
  /// Of a training step, and of what a Session runs; only where passes are asked for.
  passes::PassLog training;
  passes::PassLog inference;
};

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
    if (OpRegistry::instance().find(*node) == nullptr && !has_function(found.model, *node)) {
      found.unknown_ops.push_back(node->label() + ": the op is not known to Graft");
    }
    for_each_body(*node, [&](const Graph& body) { count_ops(body, found); });
  }
}

/// Class indices for a prediction [N,C,...] with C > 1, numbers otherwise.
Loss assumed_loss(const std::string& name, const Value& output) {
  if (name != "auto") return loss_from_name(name);
  const std::optional<SymShape>& shape = output.shape();
  const bool has_classes =
      shape && shape->rank() >= 2 && (*shape)[1].is_known() && (*shape)[1].value() > 1;
  if (!has_classes) return mse();
  return output.producer() != nullptr && output.producer()->is("LogSoftmax") ? nll()
                                                                             : cross_entropy();
}

void find_training(Findings& found) {
  Graph& graph = found.newest.graph();
  passes::PassContext context{.device = cpu()};
  passes::run_passes(passes::kOpenGradientPath, graph, context);
  for (const Value* value : default_trainable(found.newest.graph(), &found.separated.graph())) {
    found.trainable.push_back(value);
  }
  const std::vector<Value*>& outputs = found.newest.graph().outputs();
  if (outputs.empty()) return;
  found.blockers = what_stops_gradients(found.newest.graph(), outputs.front(), found.trainable);
}

void find_costs(const Arguments& arguments, Findings& found) {
  std::string missing;
  const auto types = bound_types(found.newest.graph(), found.batch, &missing);
  if (!types) {
    found.obstacle = "the shape of input " + missing + " is not known";
    return;
  }
  const std::unique_ptr<Graph> graph = bound_graph(found.newest, *types);
  found.macs = multiply_adds(*graph);
  if (found.trainable.empty() || graph->outputs().empty()) {
    found.obstacle = "there is nothing to train";
    return;
  }
  const Value& output = *graph->outputs().front();
  found.loss = assumed_loss(arguments.loss, output);
  if (!found.blockers.empty()) {
    found.obstacle = "gradients are stopped";
    return;
  }
  const TrainOptions options{.loss = found.loss,
                             .optimizer = optimizer_from_name(arguments.optimizer)};
  found.memory = plan_step(found.separated, options, *types, target_type(found.loss, output.type()),
                           arguments.passes ? &found.training : nullptr);
}

void find_inference(Findings& found) {
  const auto types = bound_types(found.newest.graph(), found.batch);
  if (types) plan_inference(found.separated, *types, &found.inference);
}

Findings find(const Arguments& arguments) {
  if (arguments.loss != "auto") loss_from_name(arguments.loss);
  optimizer_from_name(arguments.optimizer);
  Findings found;
  found.model = onnx::load(arguments.model);
  found.batch = arguments.batch.value_or(1);
  count_ops(found.model.graph(), found);
  found.training.printed = found.inference.printed = arguments.passes.value_or("");
  if (!found.unknown_ops.empty()) {
    found.obstacle = "an op is not known";
    return found;
  }
  try {
    found.separated = found.model.clone();
    if (arguments.batch) edit::set_batch(found.separated, *arguments.batch);
    separate_parameters(found.separated.graph());
    found.newest = newest_form(found.separated);
    find_training(found);
    find_costs(arguments, found);
    if (arguments.passes) find_inference(found);
  } catch (const Error& error) {
    // A model that cannot be run or trained is still worth a look: that is what inspect is for.
    found.obstacle = error.what();
  }
  return found;
}

std::int64_t count_numbers(const std::vector<Tensor>& tensors) {
  std::int64_t count = 0;
  for (const Tensor& tensor : tensors) count += tensor.size();
  return count;
}

/// What the file holds in floats: initializers, and Constant nodes, where some exporters put them.
std::vector<Tensor> float_tensors(const Graph& graph) {
  std::vector<Tensor> tensors;
  for (const Value* value : graph.initializers()) tensors.push_back(value->initializer());
  for (const auto& node : graph.nodes()) {
    if (node->is("Constant") && node->attributes.has("value")) {
      tensors.push_back(node->attributes.get_tensor("value"));
    }
  }
  std::erase_if(tensors, [](const Tensor& tensor) { return !is_float(tensor.dtype()); });
  return tensors;
}

std::vector<Tensor> tensors_of(const std::vector<const Value*>& values) {
  std::vector<Tensor> tensors;
  for (const Value* value : values) tensors.push_back(value->initializer());
  return tensors;
}

void print_values(const char* title, const std::vector<Value*>& values) {
  std::cout << title;
  for (const Value* value : values) std::cout << "  " << value->name() << ' ' << value->type();
  std::cout << '\n';
}

void print_training(const Findings& found) {
  std::cout << "training     ";
  const std::vector<std::string>& stops =
      found.unknown_ops.empty() ? found.blockers : found.unknown_ops;
  if (stops.empty() && !found.trainable.empty()) {
    std::cout << "every op on the way has a gradient\n";
  } else if (stops.empty()) {
    std::cout << "no parameter feeds a weight slot\n";
  } else {
    std::cout << stops.size() << (stops.size() == 1 ? " node stops" : " nodes stop")
              << " gradients\n";
  }
  for (const std::string& line : stops) std::cout << "             " << line << '\n';
  if (!found.trainable.empty()) {
    std::cout << "trainable    " << with_commas(count_numbers(tensors_of(found.trainable)))
              << " numbers in " << found.trainable.size() << " parameters by default\n";
  }
  for (const Value* value : found.trainable) {
    std::cout << "             " << value->name() << ' ' << describe(value->initializer()) << '\n';
  }
}

void print_text(const Arguments& arguments, const Findings& found) {
  const Graph& graph = found.model.graph();
  const std::vector<Tensor> numbers = float_tensors(graph);
  std::cout << "model        " << arguments.model << ": ir " << found.model.ir_version << ", opset "
            << found.model.opset() << ", "
            << (found.model.producer_name.empty() ? "no producer" : found.model.producer_name)
            << ' ' << found.model.producer_version << '\n';
  print_values("inputs     ", passes::required_inputs(graph));
  print_values("outputs    ", graph.outputs());
  std::cout << "ops        ";
  for (const auto& [op, count] : found.ops) std::cout << "  " << op << ' ' << count;
  std::cout << "\nparameters   " << with_commas(count_numbers(numbers)) << " numbers in "
            << numbers.size() << " float tensors\n";
  print_training(found);
  if (found.macs) {
    std::cout << "cost         " << short_count(static_cast<double>(*found.macs))
              << " multiply-adds for a batch of " << found.batch << '\n';
  }
  if (found.memory) {
    const StepMemory& memory = *found.memory;
    std::cout << "memory       a training step needs "
              << bytes_text(memory.arena_bytes + memory.parameter_bytes + memory.optimizer_bytes)
              << " (arena " << bytes_text(memory.arena_bytes) << ", parameters "
              << bytes_text(memory.parameter_bytes) << ", optimizer "
              << bytes_text(memory.optimizer_bytes) << ") with a batch of " << found.batch << ", "
              << found.loss.name << ", " << arguments.optimizer << '\n';
  } else if (!found.obstacle.empty()) {
    std::cout << "memory       not known: " << found.obstacle << '\n';
  }
}

nlohmann::ordered_json values_json(const std::vector<Value*>& values) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Value* value : values) {
    list.push_back({{"name", value->name()}, {"type", text(value->type())}});
  }
  return list;
}

void print_as_json(const Findings& found) {
  const Graph& graph = found.model.graph();
  nlohmann::ordered_json line{{"ir_version", found.model.ir_version},
                              {"opset", found.model.opset()},
                              {"producer", found.model.producer_name},
                              {"inputs", values_json(passes::required_inputs(graph))},
                              {"outputs", values_json(graph.outputs())},
                              {"ops", found.ops},
                              {"parameters", count_numbers(float_tensors(graph))}};
  nlohmann::ordered_json trainable = nlohmann::ordered_json::array();
  for (const Value* value : found.trainable) {
    trainable.push_back({{"name", value->name()}, {"type", describe(value->initializer())}});
  }
  line["trainable"] = trainable;
  line["blockers"] = found.unknown_ops.empty() ? found.blockers : found.unknown_ops;
  line["batch"] = found.batch;
  if (found.macs) line["multiply_adds"] = *found.macs;
  if (found.memory) {
    line["loss_name"] = found.loss.name;
    line["arena_bytes"] = found.memory->arena_bytes;
    line["parameter_bytes"] = found.memory->parameter_bytes;
    line["optimizer_bytes"] = found.memory->optimizer_bytes;
  }
  if (!found.obstacle.empty()) line["obstacle"] = found.obstacle;
  print_json(line);
}

void show_passes(const Arguments& arguments, const Findings& found) {
  const std::string batch = text(", batch of ", found.batch);
  const std::array runs{PassRun{"training step" + batch, found.training},
                        PassRun{"inference" + batch, found.inference}};
  if (arguments.passes->empty()) {
    print_passes(runs, arguments.json);
  } else {
    print_graphs_behind(*arguments.passes, runs);
  }
  if (!found.obstacle.empty()) std::cerr << "not compiled: " << found.obstacle << '\n';
}

}  // namespace

Run add_inspect(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  app.add_option("--batch,--batch-size", arguments->batch,
                 "samples in a batch, for costs (default: 1)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  app.add_option("--loss", arguments->loss, "for the training memory")->capture_default_str();
  app.add_option("--optimizer", arguments->optimizer, "for the training memory")
      ->capture_default_str();
  app.add_option("--passes", arguments->passes,
                 "show what is done to the graph before it runs; with a pass's NAME, the graph "
                 "behind it")
      ->expected(0, 1)
      ->type_name("[NAME]");
  app.add_flag("--json", arguments->json, "print a JSON line");
  return [arguments] {
    const Findings found = find(*arguments);
    if (arguments->passes) {
      show_passes(*arguments, found);
    } else if (arguments->json) {
      print_as_json(found);
    } else {
      print_text(*arguments, found);
    }
    return ok;
  };
}

}  // namespace graft::cli
