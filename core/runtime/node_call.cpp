#include "core/runtime/node_call.h"

#include <algorithm>

#include "core/ops/evaluate.h"
#include "core/ops/registry.h"
#include "core/passes/pipeline.h"
#include "core/runtime/plan.h"

namespace graft {
namespace {

bool is_plain(const Datum& datum) {
  return datum.is_nothing() || (datum.is_tensor() && datum.tensor().dtype() != DType::string);
}

/// A composite op without a kernel of its own runs as the ops that it is made of. Takes the graph,
/// of one node, all of whose inputs are constants.
std::vector<Datum> run_parts(std::unique_ptr<Graph> graph, const Node& node) {
  std::vector<bool> is_wanted;
  for (int i = 0; i < node.output_count(); ++i) {
    is_wanted.push_back(node.output(i) != nullptr);
    if (is_wanted.back()) graph->add_output(node.output(i));
  }
  passes::PassContext context{.device = cpu()};
  passes::run_passes(passes::kOneOp, *graph, context);
  Plan plan(std::move(graph));
  plan.run({});
  std::vector<Datum> results;
  int next = 0;
  for (const bool wanted : is_wanted) {
    results.push_back(wanted ? Datum(plan.output(next++).clone()) : Datum());
  }
  return results;
}

/// The node alone in a graph, its inputs constants, so that inference and factories see them.
std::vector<Datum> evaluate_alone(const Node& node, std::span<const Datum> inputs) {
  auto graph = std::make_unique<Graph>("call");
  std::vector<Value*> values;
  std::vector<Tensor> tensors;
  for (const Datum& input : inputs) {
    const bool is_given = input.is_tensor();
    tensors.push_back(is_given ? input.tensor() : Tensor());
    values.push_back(is_given ? graph->add_initializer("", tensors.back()) : nullptr);
  }
  std::vector<std::string> outputs;
  for (int i = 0; i < node.output_count(); ++i) {
    outputs.push_back(node.output(i) == nullptr ? "" : graph->unique_name(node.output(i)->name()));
  }
  Node* const twin =
      graph->add_node(node.op_type(), node.domain(), values, outputs, node.attributes);
  twin->set_name(node.name());
  infer(*twin);
  for (int i = 0; i < twin->output_count(); ++i) {
    const Value* const output = twin->output(i);
    if (output == nullptr) continue;
    if (output->dtype() == DType::string) return call_dynamic(node, inputs);
    if (!output->shape() || !output->shape()->known()) {
      fail(ErrorKind::unsupported, node.label(), ": the shape of '", output->name(),
           "' stays unknown: ", output->type());
    }
  }
  if (OpRegistry::instance().get(*twin).backward.decomposition() != nullptr &&
      prepare_all_kernels(*twin, cpu()).empty()) {
    return run_parts(std::move(graph), *twin);
  }
  std::vector<Tensor> results = evaluate(*twin, tensors);
  return {results.begin(), results.end()};
}

}  // namespace

NodeCall make_call(const Node& node) {
  bool has_body = false;
  for_each_body(node, [&](const Graph&) { has_body = true; });
  if (has_body) return make_control_call(node);
  NodeCall call;
  call.reads.assign(node.inputs().begin(), node.inputs().end());
  const OpDef& def = OpRegistry::instance().get(node);
  call.run = [&node, is_dynamic = def.is_dynamic](std::span<const Datum> inputs) {
    const bool takes_plain = std::ranges::all_of(inputs, is_plain);
    return is_dynamic || !takes_plain ? call_dynamic(node, inputs) : evaluate_alone(node, inputs);
  };
  return call;
}

}  // namespace graft
