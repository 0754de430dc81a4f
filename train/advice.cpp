#include "train/advice.h"

#include <algorithm>

#include "core/layers/fix_input.h"
#include "core/passes/pass.h"
#include "train/logits.h"
#include "train/masters.h"
#include "train/tied.h"

namespace graft {
namespace {

void look_at_ends(const Graph& graph, std::vector<Advice>& advice) {
  for (const Value* output : graph.outputs()) {
    const Node* const end = maker_of(*output);
    if (end == nullptr || !(end->is("Softmax") || end->is("Sigmoid"))) continue;
    advice.push_back({text("output '", output->name(), "' holds probabilities (", end->label(),
                           "): losses of logits judge what comes before it"),
                      text("edit MODEL --truncate ", end->input(0)->name(),
                           " --out OUT, to cut it off for good")});
  }
}

/// Only where all inputs start with a number: a state may be [layers,batch,units].
void look_at_batch(const Graph& graph, std::vector<Advice>& advice) {
  const Value* fixed = nullptr;
  for (const Value* input : passes::required_inputs(graph)) {
    if (!input->shape() || input->shape()->rank() < 2) continue;
    if (!(*input->shape())[0].is_known()) return;
    if (fixed == nullptr) fixed = input;
  }
  if (fixed == nullptr) return;
  advice.push_back({text("input '", fixed->name(), "' is ", fixed->type(),
                         ", which fixes the batch to ", (*fixed->shape())[0]),
                    "edit MODEL --batch any --out OUT"});
}

void look_at_types(const std::vector<const Value*>& trained, std::vector<Advice>& advice) {
  const auto halves =
      std::ranges::count_if(trained, [](const Value* value) { return is_half(value->dtype()); });
  if (halves == 0) return;
  advice.push_back({text(halves, " parameters have 16 bits: they train in f32, and the file gets ",
                         "them rounded"),
                    ""});
}

void look_at_quantization(const Graph& graph, std::vector<Advice>& advice) {
  const auto is_quantized = [](const auto& node) {
    return (node->is("DequantizeLinear") || node->is("MatMulInteger") || node->is("ConvInteger")) &&
           std::ranges::any_of(node->inputs(), [](const Value* input) {
             return input != nullptr && input->is_initializer() && is_integer(input->dtype()) &&
                    input->initializer().size() > 1;
           });
  };
  const auto count = std::ranges::count_if(graph.nodes(), is_quantized);
  if (count == 0) return;
  advice.push_back({text(count, " weights are integers (quantized), which do not train"),
                    "train the model that the file was quantized from"});
}

void look_at_conditions(const Graph& graph, std::vector<Advice>& advice) {
  for (const Value* input : edit::inputs_that_choose_weights(graph)) {
    advice.push_back({text("input '", input->name(), "' ", input->type(),
                           " chooses between branches that hold weights"),
                      text("edit MODEL --set ", input->name(), "=VALUE --out OUT")});
  }
}

/// A weight that the exporter wrote twice: as it is, and transposed or copied.
void look_at_copies(const std::vector<const Value*>& trained, std::vector<Advice>& advice) {
  constexpr std::int64_t kFew = 1024;  // smaller ones are equal by chance: ones and zeros
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const Tensor& one = trained[i]->initializer();
    if (one.rank() != 2 || one.size() < kFew) continue;
    for (std::size_t j = i + 1; j < trained.size(); ++j) {
      if (!are_copies(one, trained[j]->initializer())) continue;
      const std::string pair = trained[i]->name() + "," + trained[j]->name();
      advice.push_back({text("'", trained[i]->name(), "' and '", trained[j]->name(),
                             "' hold one matrix: written twice, they would part"),
                        "train ... --tied " + pair});
    }
  }
}

}  // namespace

std::vector<Advice> advise(const Model& file, const Graph& newest,
                           const std::vector<const Value*>& trained) {
  std::vector<Advice> advice;
  look_at_ends(file.graph(), advice);
  look_at_batch(file.graph(), advice);
  look_at_types(trained, advice);
  look_at_quantization(newest, advice);
  look_at_conditions(file.graph(), advice);
  look_at_copies(trained, advice);
  return advice;
}

}  // namespace graft
