#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/layers/fix_input.h"
#include "core/passes/pass.h"
#include "tools/graft/arguments.h"
#include "tools/graft/findings.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/layer_table.h"
#include "tools/graft/pairs.h"
#include "tools/graft/pass_table.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

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

std::vector<Tensor> initial_values(const std::vector<const Value*>& values) {
  std::vector<Tensor> tensors;
  for (const Value* value : values) tensors.push_back(value->initializer());
  return tensors;
}

void print_values(const char* title, const std::vector<Value*>& values) {
  std::cout << title;
  for (const Value* value : values) std::cout << "  " << value->name() << ' ' << value->type();
  std::cout << '\n';
}

void print_stops(const Findings& found) {
  const std::vector<std::string> stops = found.stops();
  std::cout << "training     ";
  if (stops.empty() && !found.trainable.empty()) {
    std::cout << "every op on the way to '" << found.judged << "' has a gradient\n";
  } else if (stops.empty()) {
    std::cout << "no parameter feeds a weight slot\n";
  } else {
    std::cout << stops.size() << (stops.size() == 1 ? " node stops" : " nodes stop")
              << " gradients\n";
  }
  for (const std::string& line : stops) std::cout << "             " << line << '\n';
  for (const auto& [output, others] : found.blockers) {
    if (output == found.judged) continue;
    std::cout << "             output '" << output
              << "': " << (others.empty() ? "trains too, by --output " + output : others.front())
              << '\n';
  }
}

void print_parameters(const Findings& found) {
  if (!found.trainable.empty()) {
    std::cout << "trainable    " << with_commas(count_numbers(initial_values(found.trainable)))
              << " numbers in " << found.trainable.size() << " parameters by default\n";
  }
  for (const Value* value : found.trainable) {
    std::cout << "             " << value->name() << ' ' << describe(value->initializer()) << '\n';
  }
  if (!found.frozen.empty()) {
    std::cout << "frozen       " << found.frozen.size() << " float tensors\n";
  }
  for (const auto& [value, why] : found.frozen) {
    std::cout << "             " << value->name() << ' ' << describe(value->initializer()) << ": "
              << why << '\n';
  }
}

void print_advice(const Findings& found) {
  for (const Advice& advice : found.advice) {
    std::cout << "note         " << advice.found << '\n';
    if (!advice.remedy.empty()) std::cout << "             remedy: " << advice.remedy << '\n';
  }
}

void print_findings(const InspectArguments& arguments, const Findings& found) {
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
  print_stops(found);
  print_parameters(found);
  print_advice(found);
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
  line["blockers"] = found.stops();
  for (const auto& [value, why] : found.frozen) {
    line["frozen"].push_back(
        {{"name", value->name()}, {"type", describe(value->initializer())}, {"why", why}});
  }
  for (const Advice& advice : found.advice) {
    line["notes"].push_back({{"found", advice.found}, {"remedy", advice.remedy}});
  }
  line["output"] = found.judged;
  line["can_train"] = found.can_train();
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

void show_passes(const InspectArguments& arguments, const Findings& found) {
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

/// For a model of which no output can be trained as far as is known.
std::string why_nothing_trains(const Findings& found) {
  const std::vector<std::string> stops = found.stops();
  const std::vector<const Value*> choose =
      edit::inputs_that_choose_weights(found.separated.graph());
  if (!choose.empty() && found.trainable.empty()) {
    const std::string& name = choose.front()->name();
    return text("the weights lie in branches between which input '", name,
                "' chooses: make it a constant by edit MODEL --set ", name, "=VALUE --out OUT");
  }
  if (!stops.empty() && !found.shapes_to_say.empty() && found.unknown_ops.empty()) {
    return text("whether this model trains depends on the shapes of its inputs: say them by ",
                found.shapes_to_say);
  }
  if (!stops.empty()) return "nothing in this model can train: " + stops.front();
  return "nothing in this model can train: " +
         (found.obstacle.empty() ? "no parameter feeds a weight slot" : found.obstacle);
}

}  // namespace

Run add_inspect(CLI::App& app) {
  const auto arguments = std::make_shared<InspectArguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  app.add_option("--batch,--batch-size", arguments->batch,
                 "samples in a batch, for costs (default: the file's, or 1)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  app.add_option("--output", arguments->output,
                 "the output that a loss would judge (default: the first)")
      ->type_name("NAME");
  app.add_option_function<std::vector<std::string>>(
         "--shape",
         [arguments](const std::vector<std::string>& texts) {
           for (const std::string& given : texts) {
             const auto [name, shape] = split_pair("--shape", given, "NAME=SHAPE");
             arguments->shapes[name] = parse_shape(shape, "--shape");
           }
         },
         "the shape of an input, as x=1x3x224x224, where the file leaves it open")
      ->type_name("NAME=SHAPE");
  app.add_flag("--layers", arguments->layers,
               "a table: each value's name, op, shape, parameters, multiply-adds and bytes");
  app.add_option("--loss", arguments->loss, "for the training memory")->capture_default_str();
  app.add_option("--optimizer", arguments->optimizer, "for the training memory")
      ->capture_default_str();
  app.add_option("--passes", arguments->passes,
                 "show what is done to the graph before it runs; with a pass's NAME, the graph "
                 "behind it")
      ->expected(0, 1)
      ->type_name("[NAME]");
  app.add_flag("--json", arguments->json, "print a JSON line");
  app.get_option("--layers")->excludes("--json");
  return [arguments] {
    const Findings found = find(*arguments);
    if (arguments->passes) {
      show_passes(*arguments, found);
    } else if (arguments->layers) {
      print_layers(found);
    } else if (arguments->json) {
      print_as_json(found);
    } else {
      print_findings(*arguments, found);
    }
    if (found.can_train() || arguments->passes || arguments->layers) return ok;
    std::cerr << "graft: " << why_nothing_trains(found) << '\n';
    return bad_input;
  };
}

}  // namespace graft::cli
