#include "autograd/gradient_op.h"

#include <algorithm>
#include <unordered_set>

#include "autograd/backward.h"
#include "core/base/at.h"
#include "core/ops/builder.h"

namespace graft::autograd {
namespace {

bool is_gradient_op(const Node& node) {
  return node.is("Gradient", "ai.onnx.preview.training");
}

Value* find_value(const Node& node, const std::string& name) {
  Value* const value = node.graph().find(name);
  if (value == nullptr) {
    fail(ErrorKind::model, node.label(), ": no value is named '", name, "'");
  }
  return value;
}

/// The values that the attribute names, which must be the node's inputs from `first` on.
std::vector<Value*> named_inputs(const Node& node, std::string_view attribute, int first) {
  const Attribute* const found = node.attributes.find(attribute);
  if (found == nullptr) return {};
  const auto* const names = std::get_if<std::vector<std::string>>(&found->value);
  if (names == nullptr) fail(ErrorKind::type, node.label(), ": ", attribute, " are not strings");
  std::vector<Value*> values;
  for (const std::string& name : *names) {
    values.push_back(find_value(node, name));
    const int index = first + static_cast<int>(values.size()) - 1;
    if (node.input(index) != values.back()) {
      fail(ErrorKind::unsupported, node.label(), ": input ", index, " is not '", name,
           "', which it stands for; Graft differentiates at the graph's own values only");
    }
  }
  return values;
}

/// Moves the node, and all that depends on it, behind the nodes that are there. Nothing in the file
/// says that `y` is computed before the node.
void move_behind(Node& node) {
  Graph& graph = node.graph();
  std::vector<Node*> later{&node};
  std::unordered_set<const Node*> dependent{&node};
  for (Node* other = graph.next(&node); other != nullptr; other = graph.next(other)) {
    bool depends = false;
    for_each_read(*other, [&](const Value& value) {
      depends = depends || dependent.contains(value.producer());
    });
    if (!depends) continue;
    dependent.insert(other);
    later.push_back(other);
  }
  for (Node* one : later) graph.move(one, nullptr);
}

/// Readers, and nodes that name it, find the gradient in place of the node's output.
void replace_output(Node& node, Value* output, Value* gradient) {
  Graph& graph = node.graph();
  const std::string name = output->name();
  Builder builder(graph, &node);
  const Expr own = gradient != nullptr ? call("Identity", {builder.expr(gradient)})
                                       : zeros_like(builder.expr(output));
  graph.rename(output, graph.unique_name(name + "_lowered"));
  graph.rename(own.value(), name);
  graph.replace_all_uses(output, own.value());
}

void lower(Node& node) {
  const std::vector<Value*> wanted = named_inputs(node, "xs", 0);
  named_inputs(node, "zs", static_cast<int>(wanted.size()));
  Value* const y = find_value(node, node.attributes.get_string("y", ""));
  const std::vector<Value*> gradients = backward(node.graph(), {{y}}, wanted);
  move_behind(node);
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) == nullptr) continue;
    if (i >= static_cast<int>(wanted.size())) {
      fail(ErrorKind::model, node.label(), ": has more outputs than xs");
    }
    replace_output(node, node.output(i), at(gradients, i));
  }
  node.graph().remove(&node);
}

}  // namespace

bool has_gradient_ops(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const auto& node) { return is_gradient_op(*node); });
}

void lower_gradient_ops(Graph& graph) {
  std::vector<Node*> found;
  for (const auto& node : graph.nodes()) {
    if (is_gradient_op(*node)) found.push_back(node.get());
  }
  for (Node* node : found) lower(*node);
}

}  // namespace graft::autograd
