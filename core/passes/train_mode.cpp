#include <algorithm>

#include "core/ops/builder.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

using Names = std::vector<std::string>;

bool changes(const Value* value, const Names& frozen) {
  return value != nullptr && value->is_variable &&
         std::ranges::find(frozen, value->name()) == frozen.end();
}

/// A statistic that is given, not followed: computed, or a constant (core/graph/frozen.h).
bool is_fixed(const Value& statistic) {
  return !statistic.is_initializer() || statistic.role == Role::constant;
}

/// A frozen BatchNormalization (neither scale nor bias trains) keeps its running statistics, and so
/// does one whose statistics are fixed: there is nothing to update.
bool trains(const Node& node, const Names& frozen) {
  return node.is("BatchNormalization") &&
         (changes(node.input(1), frozen) || changes(node.input(2), frozen)) &&
         !is_fixed(*node.input(3)) && !is_fixed(*node.input(4));
}

/// y = BatchNormalization(x, scale, bias, mean, var), with statistics of the batch.
void train_batch_norm(Graph& graph, Node& node) {
  for (int i = 1; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && !node.output(i)->is_unused()) {
      fail(ErrorKind::unsupported, node.label(), ": its statistics are read ('",
           node.output(i)->name(), "'), which training cannot give");
    }
  }
  for (const int statistic : {3, 4}) {
    for (const Use& use : node.input(statistic)->uses()) {
      if (!use.node->is("BatchNormTraining", kInternalDomain)) continue;
      fail(ErrorKind::unsupported, node.label(), ": ", use.node->label(),
           " has the same running statistics ('", node.input(statistic)->name(),
           "'), which a step can update once; give each its own, or freeze scale and bias");
    }
    node.input(statistic)->is_variable = true;
  }
  Builder builder(graph, &node);
  const Node* const training =
      builder.node("BatchNormTraining", kInternalDomain, node.copy_inputs(), 5,
                   {{"epsilon", AttributeValue(node.attributes.get_float("epsilon", 1e-5F))},
                    {"momentum", AttributeValue(node.attributes.get_float("momentum", 0.9F))}});
  graph.replace_all_uses(node.output(0), training->output(0));
}

/// The ratio is an input; without one it is 0.5.
float dropout_ratio(const Node& node) {
  if (node.input(1) == nullptr) return 0.5F;
  const Tensor& ratio = node.input(1)->initializer();
  if (!ratio.defined()) {
    fail(ErrorKind::unsupported, node.label(), ": the ratio must be known before the run");
  }
  return static_cast<float>(to_double(ratio).front());
}

void train_dropout(Graph& graph, Node& node, std::uint64_t seed, std::int64_t op_id) {
  if (node.output(1) != nullptr && !node.output(1)->is_unused()) {
    fail(ErrorKind::unsupported, node.label(), ": its mask is read, which training cannot give");
  }
  Builder builder(graph, &node);
  const Node* const training =
      builder.node("DropoutTraining", kInternalDomain, {node.input(0)}, 1,
                   {{"ratio", AttributeValue(dropout_ratio(node))},
                    {"seed", AttributeValue(static_cast<std::int64_t>(seed))},
                    {"op_id", AttributeValue(op_id)}});
  graph.replace_all_uses(node.output(0), training->output(0));
}

}  // namespace

bool train_mode(Graph& graph, std::uint64_t seed, const std::vector<std::string>& frozen) {
  bool changed = false;
  std::int64_t op_id = 0;
  for (auto next = graph.nodes().begin(); next != graph.nodes().end();) {
    Node& node = **next++;  // which may go
    if (trains(node, frozen)) {
      train_batch_norm(graph, node);
    } else if (node.is("Dropout")) {
      train_dropout(graph, node, seed, op_id++);
    } else {
      continue;
    }
    graph.remove(&node);
    changed = true;
  }
  return changed;
}

}  // namespace graft::passes
