// How it works: batch_probe.h tells where values hold the batch, batch_edit_internal.h changes what
// holds it. Start at `follow`.
#include "core/layers/batch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/graph/edit.h"
#include "core/layers/batch_edit_internal.h"
#include "core/ops/infer.h"
#include "core/passes/pass.h"
#include "core/passes/pipeline.h"

namespace graft::edit {
namespace {

/// The number that all inputs have as their batch; set_batch refuses inputs that differ.
std::optional<std::int64_t> old_batch(const Graph& graph) {
  std::optional<std::int64_t> batch;
  for (const Value* input : passes::required_inputs(graph)) {
    if (!input->shape() || input->shape()->rank() == 0) continue;
    const Dim& first = (*input->shape())[batch_axis(graph, *input)];
    if (!first.is_known() || batch.value_or(first.value()) != first.value()) return std::nullopt;
    batch = first.value();
  }
  return batch;
}

/// Why shapes do not fit; nothing if they do, as far as they are known.
std::optional<Error> misfit_of(const Model& model) {
  try {
    Model copy = model.clone();
    passes::PassContext context{.device = cpu(), .model = &copy};
    passes::run_passes(passes::kOutputTypes, copy.graph(), context);
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

bool takes(const Model& model, std::int64_t batch) {
  Model copy = model.clone();
  set_batch_types(copy, batch);
  return !misfit_of(copy);
}

bool leaves_batch_open(const Graph& graph) {
  const std::vector<Value*> inputs = passes::required_inputs(graph);
  const auto is_open = [&](const Value* input) {
    return input->shape() && input->shape()->rank() > 0 &&
           !(*input->shape())[batch_axis(graph, *input)].is_known();
  };
  return !inputs.empty() && std::ranges::all_of(inputs, is_open);
}

/// Numbers that shapes are made of, the smallest first.
std::set<std::int64_t> small_integers(const Graph& graph) {
  constexpr std::int64_t kMostDims = 16;
  std::set<std::int64_t> numbers;
  const auto add = [&](const Tensor& tensor) {
    if (tensor.dtype() != DType::i64 || tensor.size() > kMostDims) return;
    for (const std::int64_t number : tensor.values<const std::int64_t>()) {
      if (number > 0) numbers.insert(number);
    }
  };
  for (const Value* value : graph.initializers()) add(value->initializer());
  for (const auto& node : graph.nodes()) {
    if (node->is("Constant") && node->attributes.has("value")) {
      add(node->attributes.get_tensor("value"));
    }
  }
  return numbers;
}

/// The batch that a file holds which says that it takes any: of the numbers in it the one, and no
/// other, that it does take.
std::optional<std::int64_t> hidden_batch(const Model& model) {
  constexpr std::size_t kMostTried = 32;
  if (!leaves_batch_open(model.graph()) || (takes(model, 2) && takes(model, 3))) {
    return std::nullopt;
  }
  std::set<std::int64_t> numbers = small_integers(model.graph());
  numbers.insert({2, 3});
  if (numbers.size() > kMostTried) return std::nullopt;
  std::erase_if(numbers, [&](std::int64_t number) { return !takes(model, number); });
  return numbers.size() == 1 ? std::optional(*numbers.begin()) : std::nullopt;
}

bool is_any_of(const Node& node, std::initializer_list<std::string_view> ops) {
  return std::ranges::any_of(ops, [&](std::string_view op) { return node.is(op); });
}

bool infer_grown(BatchEdit& edit, Node& node) {
  if (is_any_of(node, {"LSTM", "GRU", "RNN"})) free_states(edit, node);
  if (node.is("Concat")) free_operands(edit, node);
  if (node.is("Expand")) {
    free_repeated(edit, node);
    free_shape(edit, node, 1);
  }
  if (node.is("Resize")) free_shape(edit, node, 3);
  try {
    if (node.is("Reshape") && !free_target(edit, node)) return false;
    infer(node);
  } catch (const Error& error) {
    fail(ErrorKind::unsupported, "set_batch: the batch ", edit.probe.batch(),
         " of the export is part of the model: ", error.what(),
         "; export the model with a free batch instead");
  }
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && !known(node.output(i))) return false;
  }
  if (!node.is("Reshape")) edit.probe.keep_outer(node);
  return true;
}

/// How many nodes are left behind the first whose shape is not known yet.
std::size_t sweep(BatchEdit& edit) {
  Graph& graph = edit.probe.grown();
  std::size_t left = graph.node_count();
  Node* next = graph.nodes().front().get();
  while (next != nullptr && infer_grown(edit, *next)) {
    next = graph.next(next);
    --left;
  }
  return next == nullptr ? 0 : left;
}

void require_batch_in_outputs(const BatchEdit& edit) {
  const auto& outputs = edit.probe.grown().outputs();
  const auto has_batch = [&](const Value* output) {
    return !known(output) || edit.probe.axis_of(output).has_value();
  };
  if (outputs.empty() || std::ranges::any_of(outputs, has_batch)) return;
  fail(ErrorKind::unsupported, "set_batch: no output would have the batch: '",
       outputs.front()->name(), "' is ", outputs.front()->type(), " for a batch of ",
       BatchProbe::kGrowth * edit.probe.batch(),
       " too; export the model with a free batch instead");
}

/// Of the values that the user's model has, where it says their shapes.
void update_types(BatchEdit& edit) {
  for (const auto& node : edit.graph.nodes()) {
    for (int i = 0; i < node->output_count(); ++i) {
      Value* const value = node->output(i);
      if (value == nullptr || !value->shape()) continue;
      const auto axis = edit.probe.axis_of(edit.probe.grown().find(value->name()));
      if (!axis || axis->axis >= value->shape()->rank()) continue;
      ValueType type = value->type();
      Dim& dim = (*type.shape)[axis->axis];
      const std::int64_t old = edit.probe.old_shape(value)[axis->axis];
      dim = edit.batch ? Dim(checked_multiply(old / edit.probe.batch(), *edit.batch))
            : old == edit.probe.batch() ? dim
                                        : Dim();
      value->set_type(std::move(type));
    }
  }
}

void follow(BatchEdit& edit) {
  std::size_t left = sweep(edit);
  while (left > 0) {
    edit.probe.fold();  // what a round came through is known in the next
    const std::size_t before = std::exchange(left, sweep(edit));
    if (left < before) continue;
    fail(ErrorKind::unsupported, "set_batch: shapes that are known for the batch ",
         edit.probe.batch(),
         " are not for a larger one; export the model with a free batch instead");
  }
  require_batch_in_outputs(edit);
  update_types(edit);
}

void change(Model& model, std::optional<std::int64_t> batch) {
  std::optional<std::int64_t> old = old_batch(model.graph());
  if (!old) old = hidden_batch(model);
  if (!old || *old < 1 || model.graph().nodes().empty()) return set_batch(model, batch);
  BatchProbe probe(model, *old);
  if (!probe.is_complete()) return set_batch(model, batch);
  BatchEdit edit{model.graph(), model.opset(), batch, probe};
  follow(edit);
  remove_unused(model.graph());
  set_batch_types(model, batch);
}

}  // namespace

void change_batch(Model& model, std::optional<std::int64_t> batch) {
  if (batch && *batch < 1) fail(ErrorKind::argument, "set_batch: batch ", *batch, " is below 1");
  Model copy = model.clone();
  change(copy, batch);  // throws if it cannot be done
  const std::optional<Error> misfit = batch ? misfit_of(copy) : std::nullopt;
  if (misfit && !misfit_of(model)) {
    fail(ErrorKind::unsupported, "set_batch: the model does not take a batch of ", *batch, ": ",
         misfit->what());
  }
  change(model, batch);
}

}  // namespace graft::edit
