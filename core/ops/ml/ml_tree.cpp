#include <cmath>

#include "core/ops/ml/ml_scores.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

constexpr NotDifferentiable kSteps{"the output moves in steps"};

void infer_tree_ensemble(InferContext& context) {
  infer_regressor(context, context.dtype(0), context.attributes().get_int("n_targets", 1));
}

void infer_tree_regressor(InferContext& context) {
  infer_regressor(context, DType::f32, context.attributes().get_int("n_targets", 1));
}

void infer_tree_classifier(InferContext& context) {
  const std::size_t labels = class_labels(context.node(), "classlabels_int64s").size();
  // One class is told from "not it".
  infer_classifier(context, labels == 1 ? 2 : static_cast<std::int64_t>(labels));
}

void upgrade_tree_classifier(Node& node, std::int64_t, Builder& builder) {
  name_classes(node, "classlabels_strings", "classlabels_int64s", builder);
}

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Texts = std::vector<std::string>;

/// Two trees of one branch and two leaves each, in the old encoding.
Attributes two_trees(const std::string& prefix, const Ints& targets) {
  Attributes attributes{
      {"nodes_treeids", Ints{0, 0, 0, 1, 1, 1}},
      {"nodes_nodeids", Ints{0, 1, 2, 0, 1, 2}},
      {"nodes_featureids", Ints{0, 0, 0, 1, 0, 0}},
      {"nodes_modes", Texts{"BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"}},
      {"nodes_values", Floats{0.25F, 0, 0, -0.5F, 0, 0}},
      {"nodes_truenodeids", Ints{1, 0, 0, 1, 0, 0}},
      {"nodes_falsenodeids", Ints{2, 0, 0, 2, 0, 0}}};
  attributes.set({prefix + "_treeids", Ints{0, 0, 1, 1}});
  attributes.set({prefix + "_nodeids", Ints{1, 2, 1, 2}});
  attributes.set({prefix + "_ids", targets});
  attributes.set({prefix + "_weights", Floats{1.5F, -2, 0.25F, 4}});
  return attributes;
}

std::vector<Sample> tree_ensemble_samples() {
  const Attributes attributes{{"n_targets", 2},
                              {"nodes_featureids", Ints{0, 1}},
                              {"nodes_splits", Tensor::from<float>({2}, {0.25F, 0.5F})},
                              {"nodes_modes", Tensor::from<std::uint8_t>({2}, {0, 6})},
                              {"membership_values", Tensor::from<float>({3}, {1, 2, NAN})},
                              {"nodes_truenodeids", Ints{0, 1}},
                              {"nodes_trueleafs", Ints{1, 1}},
                              {"nodes_falsenodeids", Ints{1, 2}},
                              {"nodes_falseleafs", Ints{0, 1}},
                              {"leaf_targetids", Ints{0, 1, 0}},
                              {"leaf_weights", Tensor::from<float>({3}, {1, 2, 3})},
                              {"tree_roots", Ints{0}}};
  const SampleInput x{.shape = {3, 2}, .values = {0, 0, 1, 2, 1, 3}};
  return {{"members", {x}, attributes}};
}

std::vector<Sample> tree_regressor_samples() {
  const SampleInput x{{5, 2}};
  Attributes sum = two_trees("target", {0, 1, 0, 1});
  sum.set({"n_targets", 2});
  Attributes based = sum;
  based.set({"base_values", Floats{0.5F, -0.5F}});
  std::vector<Sample> samples{{"sum", {x}, sum}, {"base", {x}, based}};
  for (const auto& [name, how] :
       {std::pair("average", "AVERAGE"), {"min", "MIN"}, {"max", "MAX"}}) {
    Attributes attributes = sum;
    attributes.set({"aggregate_function", how});
    samples.push_back({name, {x}, attributes});
  }
  return samples;
}

std::vector<Sample> tree_classifier_samples() {
  const SampleInput x{{5, 2}};
  Attributes three = two_trees("class", {0, 1, 2, 1});
  three.set({"classlabels_int64s", Ints{5, 6, 7}});
  Attributes softmax = three;
  softmax.set({"post_transform", "SOFTMAX"});
  Attributes two = two_trees("class", {0, 0, 0, 0});
  two.set({"classlabels_int64s", Ints{0, 1}});
  two.set({"post_transform", "LOGISTIC"});
  return {{"three", {x}, three, 2}, {"softmax", {x}, softmax, 2}, {"two", {x}, two, 2}};
}

std::vector<AttributeDef> node_attributes(const std::string_view (&own)[4]) {
  std::vector<AttributeDef> attributes{{"base_values", AttributeType::numbers},
                                       {"base_values_as_tensor", AttributeType::tensor},
                                       {"nodes_falsenodeids", AttributeType::integers},
                                       {"nodes_featureids", AttributeType::integers},
                                       {"nodes_hitrates", AttributeType::numbers},
                                       {"nodes_hitrates_as_tensor", AttributeType::tensor},
                                       {"nodes_missing_value_tracks_true", AttributeType::integers},
                                       {"nodes_modes", AttributeType::texts},
                                       {"nodes_nodeids", AttributeType::integers},
                                       {"nodes_treeids", AttributeType::integers},
                                       {"nodes_truenodeids", AttributeType::integers},
                                       {"nodes_values", AttributeType::numbers},
                                       {"nodes_values_as_tensor", AttributeType::tensor},
                                       {"post_transform", AttributeType::text}};
  for (std::size_t i = 0; i < 3; ++i) attributes.push_back({own[i], AttributeType::integers});
  attributes.push_back({own[3], AttributeType::numbers});
  return attributes;
}

}  // namespace

/// ONNX-ML's tree ensembles: TreeEnsemble (opset 5) and the two forms before it.
void register_ml_tree(OpRegistry& registry) {
  registry.add({.name = "TreeEnsemble",
                .domain = kMlDomain,
                .since = {{5}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = {{"aggregate_function", AttributeType::integer},
                               {"leaf_targetids", AttributeType::integers, true},
                               {"leaf_weights", AttributeType::tensor, true},
                               {"membership_values", AttributeType::tensor},
                               {"n_targets", AttributeType::integer},
                               {"nodes_falseleafs", AttributeType::integers, true},
                               {"nodes_falsenodeids", AttributeType::integers, true},
                               {"nodes_featureids", AttributeType::integers, true},
                               {"nodes_hitrates", AttributeType::tensor},
                               {"nodes_missing_value_tracks_true", AttributeType::integers},
                               {"nodes_modes", AttributeType::tensor, true},
                               {"nodes_splits", AttributeType::tensor, true},
                               {"nodes_trueleafs", AttributeType::integers, true},
                               {"nodes_truenodeids", AttributeType::integers, true},
                               {"post_transform", AttributeType::integer},
                               {"tree_roots", AttributeType::integers, true}},
                .infer = infer_tree_ensemble,
                .backward = kSteps,
                .samples = tree_ensemble_samples});
  std::vector<AttributeDef> regressor =
      node_attributes({"target_ids", "target_nodeids", "target_treeids", "target_weights"});
  regressor.push_back({"aggregate_function", AttributeType::text});
  regressor.push_back({"n_targets", AttributeType::integer});
  registry.add({.name = "TreeEnsembleRegressor",
                .domain = kMlDomain,
                .since = {{1}, {3, "*_as_tensor"}, {5}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = regressor,
                .infer = infer_tree_regressor,
                .backward = kSteps,
                .samples = tree_regressor_samples});
  std::vector<AttributeDef> classifier =
      node_attributes({"class_ids", "class_nodeids", "class_treeids", "class_weights"});
  classifier.push_back({"classlabels_int64s", AttributeType::integers});
  classifier.push_back({"classlabels_strings", AttributeType::texts});
  registry.add({.name = "TreeEnsembleClassifier",
                .domain = kMlDomain,
                .since = {{1}, {3, "*_as_tensor"}, {5}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}, {"Z"}},
                .attributes = classifier,
                .infer = infer_tree_classifier,
                .upgrade = upgrade_tree_classifier,
                .backward = kSteps,
                .samples = tree_classifier_samples});
}

}  // namespace graft
