#include <algorithm>
#include <optional>

#include "core/ops/evaluate.h"
#include "core/ops/infer.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

/// Larger results are left to the run: a graph may tile one number into gigabytes.
constexpr std::int64_t kLargestFoldedBytes = std::int64_t{1} << 26;

bool all_types_known(const Node& node) {
  const auto known = [](const Value* value) {
    return value == nullptr || (value->dtype() != DType::undefined && bits_of(value->dtype()) > 0 &&
                                value->shape() && value->shape()->known());
  };
  for (int i = 0; i < node.output_count(); ++i) {
    if (!known(node.output(i))) return false;
    if (node.output(i) != nullptr &&
        node.output(i)->bytes() > static_cast<std::size_t>(kLargestFoldedBytes)) {
      return false;
    }
  }
  return std::ranges::all_of(node.inputs(), known);
}

bool has_constant_inputs(const Node& node) {
  if (OpRegistry::instance().get(node).reads_only_shapes) return true;
  return std::ranges::all_of(node.inputs(), [](const Value* input) {
    return input == nullptr || constant_of(input).defined();
  });
}

bool is_foldable(const Node& node) {
  bool has_body = false;
  for_each_body(node, [&](const Graph&) { has_body = true; });
  const OpDef* const def = OpRegistry::instance().find(node);
  return def != nullptr && !def->updates_state() && !has_body && def->draws == Draws::nothing &&
         has_constant_inputs(node);
}

/// Ops whose shapes depend on data: the data are known here.
std::optional<std::vector<Tensor>> evaluate_dynamic(const Node& node) {
  if (KernelRegistry::instance().find_dynamic(node) == nullptr) return std::nullopt;
  std::vector<Datum> inputs;
  for (const Value* input : node.inputs()) inputs.emplace_back(constant_of(input));
  std::vector<Tensor> results;
  for (const Datum& result : call_dynamic(node, inputs)) {
    if (!result.is_tensor()) return std::nullopt;
    results.push_back(result.tensor());
  }
  const bool is_complete = static_cast<int>(results.size()) >= node.output_count();
  return is_complete ? std::optional(std::move(results)) : std::nullopt;
}

std::vector<Tensor> evaluate_constants(const Node& node) {
  std::vector<Tensor> inputs;
  for (const Value* input : node.inputs()) inputs.push_back(constant_of(input));
  return evaluate(node, inputs);
}

void replace_by_constants(Graph& graph, Node& node, const std::vector<Tensor>& results) {
  for (int i = 0; i < node.output_count(); ++i) {
    Value* const output = node.output(i);
    if (output == nullptr) continue;
    const std::string name = output->name();
    graph.rename(output, graph.unique_name(name + "_folded"));
    Value* const constant = graph.add_initializer(name, results[static_cast<std::size_t>(i)]);
    constant->role = output->role;
    graph.replace_all_uses(output, constant);
  }
  graph.remove(&node);
}

bool has_kernel(const Node& node) {
  const OpDef& def = OpRegistry::instance().get(node);
  const bool is_view =
      std::ranges::any_of(def.aliases, [](const Alias& a) { return a.kind == AliasKind::view; });
  return is_view || !prepare_all_kernels(node, cpu()).empty();
}

}  // namespace

bool fold_constants(Graph& graph) {
  bool changed = false;
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node& node = *next;
    next = graph.next(&node);
    infer(node);
    if (!is_foldable(node)) continue;
    std::optional<std::vector<Tensor>> results;
    if (OpRegistry::instance().get(node).is_dynamic) {
      results = evaluate_dynamic(node);
    } else if (all_types_known(node) && has_kernel(node)) {
      results = evaluate_constants(node);
    }
    if (!results) continue;
    replace_by_constants(graph, node, *results);
    changed = true;
  }
  return changed;
}

}  // namespace graft::passes
