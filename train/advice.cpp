#include "train/advice.h"

#include <algorithm>

#include "core/base/closest.h"
#include "core/layers/fix_input.h"
#include "core/passes/pass.h"
#include "train/copies.h"
#include "train/logits.h"
#include "train/masters.h"

namespace graft {
namespace {

void look_at_ends(const Graph& graph, std::vector<Advice>& advice) {
  for (const Value* output : graph.outputs()) {
    const Node* const end = maker_of(*output);
    if (end == nullptr || !(end->is("Softmax") || end->is("Sigmoid"))) continue;
    advice.push_back({text("output '", output->name(), "' holds probabilities (", end->label(),
                           "): losses of logits judge what comes before it"),
                      "edit MODEL --strip-probabilities --out OUT, to cut it off for good"});
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

bool reads_integers(const Node& node) {
  return std::ranges::any_of(node.inputs(), [](const Value* input) {
    return input != nullptr && input->is_initializer() && is_integer(input->dtype()) &&
           input->initializer().size() > 1;
  });
}

bool has_adapters(const Graph& graph) {
  return std::ranges::any_of(graph.initializers(), [](const Value* value) {
    return value->name().ends_with(".lora_A.weight");
  });
}

/// Products of integers can have no adapter beside them.
void look_at_quantization(const Graph& file, const Graph& newest, std::vector<Advice>& advice) {
  const auto dequantized = std::ranges::count_if(newest.nodes(), [](const auto& node) {
    return node->is("DequantizeLinear") && reads_integers(*node);
  });
  const auto packed = std::ranges::count_if(
      file.nodes(), [](const auto& node) { return node->is("MatMulNBits", "com.microsoft"); });
  const auto multiplied = std::ranges::count_if(newest.nodes(), [](const auto& node) {
    return (node->is("MatMulInteger") || node->is("ConvInteger")) && reads_integers(*node);
  });
  const auto count = dequantized + packed + multiplied;
  if (count == 0 || has_adapters(file)) return;
  advice.push_back({text(count, " weights are integers (quantized), which do not train"),
                    multiplied == count
                        ? "train the model that the file was quantized from"
                        : "edit MODEL --lora '.*' --out OUT, for adapters that train beside them"});
}

/// What PyTorch's exporters make of a Conv and the BatchNormalization behind it has a name that
/// they number.
bool is_fused(const Node& conv) {
  return conv.input(1)->name().starts_with("onnx::Conv_") || conv.name().starts_with("node_Conv_");
}

void look_at_norms(const Graph& graph, std::vector<Advice>& advice) {
  constexpr std::int64_t kDeep = 8;  // a net of as many that never had any is rare
  std::int64_t fused = 0;
  std::int64_t biased = 0;
  bool has_norm = false;
  for (const auto& node : graph.nodes()) {
    has_norm |= node->op_type().ends_with("Normalization");
    if (!node->is("Conv") || node->input(2) == nullptr) continue;
    ++biased;
    if (is_fused(*node)) ++fused;
  }
  const std::string remedy = "edit MODEL --unfuse-bn --calibrate DATA --out OUT";
  if (fused > 0) {
    advice.push_back({text("the BatchNormalization behind ", fused,
                           " of the Convs was folded into them: without ", "it they train worse"),
                      remedy});
  } else if (!has_norm && biased >= kDeep) {
    advice.push_back({text(biased, " Convs have a bias and no normalization: an export may have ",
                           "folded a BatchNormalization into each"),
                      remedy});
  }
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
  for (const std::vector<std::string>& names : find_copies(trained)) {
    advice.push_back({text(quoted_list(names), " hold one matrix: written ",
                           names.size() == 2 ? "twice" : "several times", ", they would part"),
                      "edit MODEL --tie --out OUT"});
  }
}

}  // namespace

std::vector<Advice> advise(const Model& file, const Graph& newest,
                           const std::vector<const Value*>& trained) {
  std::vector<Advice> advice;
  look_at_ends(file.graph(), advice);
  look_at_batch(file.graph(), advice);
  look_at_types(trained, advice);
  look_at_quantization(file.graph(), newest, advice);
  look_at_norms(file.graph(), advice);
  look_at_conditions(file.graph(), advice);
  look_at_copies(trained, advice);
  return advice;
}

}  // namespace graft
