#include "train/repeat_step.h"

#include <algorithm>
#include <string>
#include <vector>

#include "train/judged.h"

namespace graft {
namespace {

/// Since then Scan has no axis for batches.
constexpr std::int64_t kOldestScan = 9;

/// Of what all steps take or give.
ValueType stacked(const Value& one, std::int64_t times) {
  std::vector<std::int64_t> dims{times};
  const Shape shape = one.known_shape();
  dims.insert(dims.end(), shape.begin(), shape.end());
  return {one.dtype(), SymShape(Shape(dims))};
}

/// The body's values go on under other names, since a body hides no name of its surroundings.
std::string give_name_away(Graph& body, Value* value) {
  const std::string name = value->name();
  body.rename(value, body.unique_name(name + ".now"));
  return name;
}

/// A Scan's body has its variables first.
std::vector<Value*> variables_first(const std::vector<Value*>& values, std::size_t variables) {
  std::vector<Value*> result = values;
  std::ranges::rotate(result, result.end() - static_cast<std::ptrdiff_t>(variables));
  return result;
}

}  // namespace

void repeat_step(Model& step, std::int64_t times, std::size_t variables) {
  const std::shared_ptr<Graph> body = step.take_graph();
  auto calls = std::make_unique<Graph>(body->name);
  const std::size_t scanned = body->inputs().size() - variables;
  std::vector<Value*> arguments;
  for (Value* input : body->inputs()) {
    const bool is_variable = arguments.size() >= scanned;
    const ValueType type = is_variable ? input->type() : stacked(*input, times);
    arguments.push_back(calls->add_input(give_name_away(*body, input), type));
  }
  const std::size_t collected = body->outputs().size() - variables;
  std::vector<std::string> names;
  std::vector<ValueType> types;
  for (Value* output : body->outputs()) {
    const bool is_variable = names.size() >= collected;
    types.push_back(is_variable ? output->type() : stacked(*output, times));
    names.push_back(give_name_away(*body, output));
  }
  move_inputs_to_end(*body, {body->inputs().begin(),
                             body->inputs().begin() + static_cast<std::ptrdiff_t>(scanned)});
  body->set_outputs(variables_first(body->outputs(), variables));
  body->set_parent(calls.get());
  std::ranges::rotate(names, names.end() - static_cast<std::ptrdiff_t>(variables));
  const Node* const scan =
      calls->add_node("Scan", "", variables_first(arguments, variables), names,
                      {{"body", AttributeValue(body)}, {"num_scan_inputs", scanned}});
  for (std::size_t i = 0; i < types.size(); ++i) {
    Value* const output = scan->output(static_cast<int>((i + variables) % types.size()));
    output->set_type(types[i]);
    calls->add_output(output);
  }
  step.set_graph(std::move(calls));
  step.set_opset("", std::max(step.opset(), kOldestScan));
}

}  // namespace graft
