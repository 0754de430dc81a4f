#include "core/layers/repair.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/base/closest.h"
#include "core/base/regex.h"
#include "core/graph/edit.h"
#include "core/graph/frozen.h"
#include "core/layers/layer_names.h"

namespace graft::edit {
namespace {

bool matches_output(const Regex& pattern, const Node& node) {
  return node.output() != nullptr && pattern.full_match(node.output()->name());
}

std::string few(std::vector<std::string> names) {
  constexpr std::size_t kMost = 8;
  const bool has_more = names.size() > kMost;
  names.resize(std::min(names.size(), kMost));
  return quoted_list(names) + (has_more ? ", ..." : "");
}

/// The ratio is an input since opset 12.
Node* add_dropout(Model& model, Node* maker, float ratio) {
  constexpr std::int64_t kRatioIsInput = 12;
  Graph& graph = model.graph();
  Value* const value = maker->output();
  const std::string name = value->name();
  std::vector<Value*> others;
  Attributes attributes;
  if (model.opset() >= kRatioIsInput) {
    Value* const given =
        graph.add_initializer(graph.unique_name(name + "_dropout_ratio"), Tensor::scalar(ratio));
    given->role = Role::constant;
    others.push_back(given);
  } else {
    attributes.set({"ratio", ratio});
  }
  Node* const dropout = insert_behind(value, "Dropout", others, name + "_kept", graph.next(maker),
                                      std::move(attributes));
  dropout->set_name(name + "_dropout");
  return dropout;
}

std::string name_of_norm(const Node& norm) {
  std::string name = norm.input(1)->name();
  constexpr std::string_view kSuffix = ".weight";
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  return name;
}

bool is_norm(const Node& node) {
  constexpr int kInputs = 5;
  return node.is("BatchNormalization") && node.input_count() == kInputs;
}

/// Scale and bias, or mean and variance, of norms.
std::unordered_set<const Value*> inputs_of(const std::vector<Node*>& norms, int first) {
  std::unordered_set<const Value*> values;
  for (const Node* norm : norms) {
    for (const int i : {first, first + 1}) {
      if (Value* const origin = origin_of(norm->input(i))) values.insert(origin);
    }
  }
  return values;
}

void thaw(Model& model, const std::unordered_set<const Value*>& values) {
  unfreeze(model, [&](const Value& value) { return values.contains(&value); });
}

void freeze_all(Model& model, const std::unordered_set<const Value*>& values) {
  freeze(model, [&](const Value& value) { return values.contains(&value); });
}

/// Whether each element of the output is one of the input.
bool moves(const Node& node) {
  static constexpr std::array<std::string_view, 6> kMovers{"Reshape",   "Flatten",   "Squeeze",
                                                           "Unsqueeze", "Transpose", "Identity"};
  return node.domain().empty() && std::ranges::find(kMovers, node.op_type()) != kMovers.end();
}

/// The Softmax or Sigmoid behind an output, and the first node that moves its result.
struct End {
  Node* maker;
  Node* mover;
};

End end_of(const Value& output) {
  End end{output.producer(), nullptr};
  while (end.maker != nullptr && moves(*end.maker)) {
    end.mover = end.maker;
    end.maker = end.maker->input(0)->producer();
  }
  return end;
}

}  // namespace

std::vector<std::string> insert_dropout(Model& model, std::string_view pattern, float ratio) {
  if (!(ratio >= 0.0F && ratio < 1.0F)) {
    fail(ErrorKind::argument, "dropout: the ratio is ", ratio, ", wanted 0 to below 1");
  }
  const Regex wanted(pattern);
  Graph& graph = model.graph();
  std::vector<Node*> makers;
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) {
    if (node->is("Constant") || node->output() == nullptr) continue;
    if (!node->name().empty()) names.push_back(node->name());
    if (wanted.full_match(node->name()) || matches_output(wanted, *node)) {
      makers.push_back(node.get());
    }
  }
  if (makers.empty()) {
    fail(ErrorKind::argument, "dropout pattern '", pattern, "' matches none of ",
         graph.node_count(), " nodes or their outputs", names.empty() ? "" : ": ", few(names));
  }
  std::vector<std::string> values;
  for (Node* maker : makers) {
    values.push_back(add_dropout(model, maker, ratio)->output()->name());
  }
  return values;
}

NormPolicy norm_policy(std::string_view name) {
  if (name == "train") return NormPolicy::train;
  if (name == "fixed") return NormPolicy::fixed;
  if (name == "frozen") return NormPolicy::frozen;
  fail(ErrorKind::argument, "no policy '", name,
       "' for a BatchNormalization; valid here: train, fixed, frozen");
}

std::vector<std::string> set_norms(Model& model, std::string_view pattern, NormPolicy policy) {
  const Regex wanted(pattern);
  std::vector<Node*> norms;
  std::vector<std::string> names;
  std::vector<std::string> all;
  for (const auto& node : model.graph().nodes()) {
    if (!is_norm(*node)) continue;
    all.push_back(name_of_norm(*node));
    if (!wanted.full_match(node->name()) && !wanted.full_match(node->input(1)->name()) &&
        !wanted.full_match(all.back())) {
      continue;
    }
    norms.push_back(node.get());
    names.push_back(all.back());
  }
  if (norms.empty()) {
    fail(ErrorKind::argument, "bn pattern '", pattern, "' matches none of ", all.size(),
         " BatchNormalizations", all.empty() ? "" : ": ", few(all));
  }
  const auto affine = inputs_of(norms, 1);
  const auto statistics = inputs_of(norms, 3);
  policy == NormPolicy::frozen ? freeze_all(model, affine) : thaw(model, affine);
  policy == NormPolicy::train ? thaw(model, statistics) : freeze_all(model, statistics);
  return names;
}

std::vector<std::string> strip_probabilities(Model& model) {
  Graph& graph = model.graph();
  std::vector<std::string> labels;
  const std::vector<Value*> outputs = graph.outputs();
  std::vector<Value*> kept;
  for (Value* output : outputs) {
    const End end = end_of(*output);
    Value* result = output;
    if (end.maker != nullptr && (end.maker->is("Softmax") || end.maker->is("Sigmoid"))) {
      labels.push_back(end.maker->label());
      Value* const logits = end.maker->input(0);
      if (end.mover == nullptr) {
        if (logits->dtype() == DType::undefined) logits->set_type(output->type());
        graph.preserve(logits).in_value_info = false;
        result = logits;
      } else {
        end.mover->set_input(0, logits);
      }
    }
    if (std::ranges::find(kept, result) == kept.end()) kept.push_back(result);
  }
  graph.set_outputs(kept);
  remove_unused(graph);
  forget_frozen(model);
  return labels;
}

}  // namespace graft::edit
