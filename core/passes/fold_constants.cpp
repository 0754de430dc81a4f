#include <algorithm>
#include <optional>

#include "core/base/at.h"
#include "core/base/limits.h"
#include "core/ops/evaluate.h"
#include "core/ops/infer.h"
#include "core/ops/registry.h"
#include "core/passes/fold_cost_internal.h"
#include "core/passes/pass.h"

namespace graft::passes {
namespace {

/// Larger results are left to the run: a graph may tile one number into gigabytes.
bool all_types_known(const Node& node) {
  const auto known = [](const Value* value) {
    return value == nullptr || (value->dtype() != DType::undefined && bits_of(value->dtype()) > 0 &&
                                value->shape() && value->shape()->known());
  };
  for (int i = 0; i < node.output_count(); ++i) {
    if (!known(node.output(i))) return false;
    if (node.output(i) != nullptr &&
        node.output(i)->bytes() > static_cast<std::size_t>(limits().folded_tensor_bytes)) {
      return false;
    }
  }
  return std::ranges::all_of(node.inputs(), known);
}

bool has_constant_inputs(const Node& node) {
  if (OpRegistry::instance().get(node).reads_only_shapes) return true;
  return std::ranges::all_of(node.inputs(), [](const Value* input) {
    return input == nullptr || (input->is_initializer() && !input->is_variable);
  });
}

bool is_foldable(const Node& node) {
  bool has_body = false;
  for_each_body(node, [&](const Graph&) { has_body = true; });
  const OpDef* const def = OpRegistry::instance().find(node);
  return def != nullptr && !def->updates_state() && !has_body && def->draws == Draws::nothing &&
         has_constant_inputs(node);
}

/// Whether what is left for the graph pays for the node; `spend` takes it.
bool can_afford(const Node& node) {
  return fold_cost(node) <= *node.graph().folding_left();
}

void spend(const Node& node) {
  *node.graph().folding_left() -= fold_cost(node);
}

/// Sequences and the like cannot be constants of a graph.
bool gives_tensors(const Node& node) {
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && node.output(i)->type().is_container) return false;
  }
  return true;
}

/// Ops whose shapes depend on data: the data are known here.
std::optional<std::vector<Tensor>> evaluate_dynamic(const Node& node) {
  const bool has_kernel = KernelRegistry::instance().find_dynamic(node) != nullptr;
  if (!has_kernel || !gives_tensors(node) || !can_afford(node)) return std::nullopt;
  spend(node);
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
    Value* const constant = graph.add_initializer(name, at(results, i));
    constant->role = output->role;
    graph.replace_all_uses(output, constant);
  }
  graph.remove(&node);
}

bool can_evaluate(const Node& node) {
  const OpDef& def = OpRegistry::instance().get(node);
  const bool is_view =
      std::ranges::any_of(def.aliases, [](const Alias& a) { return a.kind == AliasKind::view; });
  return is_view || !prepare_all_kernels(node, cpu()).empty();
}

bool fold(Graph& graph, bool is_inferred) {
  if (!graph.folding_left()) {
    graph.folding_left() = static_cast<double>(limits().folded_bytes) +
                           static_cast<double>(limits().folded_share) * constant_bytes(graph);
  }
  bool changed = false;
  for (auto next = graph.nodes().begin(); next != graph.nodes().end();) {
    Node& node = **next++;  // which may go
    if (!is_inferred) infer(node);
    if (!is_foldable(node)) continue;
    std::optional<std::vector<Tensor>> results;
    if (OpRegistry::instance().get(node).is_dynamic) {
      results = evaluate_dynamic(node);
    } else if (all_types_known(node) && can_afford(node) && can_evaluate(node)) {
      spend(node);
      results = evaluate_constants(node);
    }
    if (!results) continue;
    replace_by_constants(graph, node, *results);
    changed = true;
    is_inferred = false;
  }
  return changed;
}

}  // namespace

bool fold_constants(Graph& graph) {
  return fold(graph, false);
}

bool fold_inferred_constants(Graph& graph) {
  return fold(graph, true);
}

}  // namespace graft::passes
