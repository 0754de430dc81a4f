#include "train/judged.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/error.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

Value* find_output(const Graph& graph, const std::string& name) {
  std::string valid;
  for (Value* output : graph.outputs()) {
    if (output->name() == name) return output;
    valid += (valid.empty() ? "" : ", ") + output->name();
  }
  fail(ErrorKind::argument, "the model has no output '", name, "'; its outputs: ", valid);
}

/// The output that is judged or, where the model computes the loss, that is shown beside it.
Value* find_prediction(const Graph& graph, const Loss& loss, const std::string& name) {
  if (!name.empty()) return find_output(graph, name);
  if (graph.outputs().empty()) fail(ErrorKind::model, "the model has no output");
  const auto is_prediction = [&](const Value* output) {
    return !is_in_graph(loss) || output->name() != loss.outputs.front();
  };
  const auto at = std::ranges::find_if(graph.outputs(), is_prediction);
  return at == graph.outputs().end() ? graph.outputs().front() : *at;
}

/// All that the value is computed from, itself included.
std::unordered_set<const Value*> sources_of(const Value* value) {
  std::unordered_set<const Value*> seen{value};
  std::vector<const Value*> open{value};
  while (!open.empty()) {
    const Node* const producer = open.back()->producer();
    open.pop_back();
    if (producer == nullptr) continue;
    for_each_read(*producer, [&](const Value& read) {
      if (seen.insert(&read).second) open.push_back(&read);
    });
  }
  return seen;
}

}  // namespace

JudgedOutputs choose_outputs(const Graph& graph, const Loss& loss, const std::string& output) {
  if (!output.empty() && !loss.outputs.empty() && !is_in_graph(loss)) {
    fail(ErrorKind::argument, "the output '", output, "' is asked for, but the loss ", loss.name,
         " names those that it judges; leave the output out");
  }
  has_class_targets(loss);  // throws if there is no such loss
  for (const Loss& part : loss.parts) has_class_targets(part);
  JudgedOutputs chosen;
  const auto add = [&](Value* value) {
    const auto at = std::ranges::find(chosen.outputs, value);
    const auto index = static_cast<std::size_t>(at - chosen.outputs.begin());
    if (at == chosen.outputs.end()) chosen.outputs.push_back(value);
    return index;
  };
  if (loss.outputs.empty() || is_in_graph(loss)) add(find_prediction(graph, loss, output));
  if (loss.outputs.empty()) chosen.judged.push_back(0);
  for (const std::string& name : loss.outputs) {
    chosen.judged.push_back(add(find_output(graph, name)));
  }
  return chosen;
}

std::vector<Value*> inputs_for_targets(const Graph& graph, const Loss& loss,
                                       const std::string& output, std::size_t inputs,
                                       std::size_t targets) {
  if (!is_in_graph(loss)) return {};
  const std::vector<Value*> all = passes::required_inputs(graph);
  if (all.size() == inputs) return {};
  if (all.size() != inputs + targets) {
    fail(ErrorKind::argument, "the model has ", all.size(), " inputs, the batch ", inputs,
         " inputs and ", targets, targets == 1 ? " target" : " targets",
         ", wanted one for each, or one for each input alone");
  }
  const Value* const prediction = choose_outputs(graph, loss, output).outputs.front();
  const std::unordered_set<const Value*> shown = sources_of(prediction);
  std::vector<Value*> chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen),
                       [&](const Value* input) { return !shown.contains(input); });
  if (chosen.size() == targets) return chosen;
  return {all.end() - static_cast<std::ptrdiff_t>(targets), all.end()};
}

void move_inputs_to_end(Graph& graph, const std::vector<Value*>& inputs) {
  for (Value* input : inputs) {
    const std::string name = input->name();
    graph.rename(input, graph.unique_name(name));
    Value* const last = graph.add_input(name, input->type());
    graph.replace_all_uses(input, last);
    graph.remove_input(input);
  }
}

}  // namespace graft
