#include <algorithm>

#include "core/ops/ml/ml_scores.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_svm_regressor(InferContext& context) {
  infer_regressor(context, DType::f32, 1);
}

/// Probabilities of each class, else a score for each pair of classes; of two classes, two scores.
void infer_svm_classifier(InferContext& context) {
  const auto labels =
      static_cast<std::int64_t>(class_labels(context.node(), "classlabels_ints").size());
  const bool is_linear = context.attributes().get_ints("vectors_per_class").empty();
  const bool has_probabilities = !context.attributes().get_floats("prob_a").empty();
  const bool by_class = is_linear || has_probabilities || labels <= 2;
  infer_classifier(context,
                   by_class ? std::max<std::int64_t>(labels, 2) : labels * (labels - 1) / 2);
}

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

Attributes kernel_of(const char* kind) {
  return {{"kernel_type", kind}, {"kernel_params", Floats{0.5F, 0.25F, 3}}};
}

std::vector<Sample> svm_regressor_samples() {
  const SampleInput x{{4, 2}};
  std::vector<Sample> samples;
  for (const auto& [name, kind] :
       {std::pair("linear", "LINEAR"), {"poly", "POLY"}, {"rbf", "RBF"}, {"sigmoid", "SIGMOID"}}) {
    Attributes attributes = kernel_of(kind);
    attributes.set({"n_supports", 2});
    attributes.set({"support_vectors", Floats{0.5F, -1, 1, 0.25F}});
    attributes.set({"coefficients", Floats{1.5F, -0.5F}});
    attributes.set({"rho", Floats{0.125F}});
    samples.push_back({name, {x}, attributes});
  }
  return samples;
}

std::vector<Sample> svm_classifier_samples() {
  const SampleInput x{{4, 2}};
  Attributes three = kernel_of("RBF");
  three.set({"vectors_per_class", Ints{1, 1, 1}});
  three.set({"support_vectors", Floats{0.5F, -1, 1, 0.25F, -1, 1}});
  three.set({"coefficients", Floats{1, -1, 0.5F, 0.75F, -0.25F, -1}});
  three.set({"rho", Floats{0.1F, -0.2F, 0.3F}});
  three.set({"classlabels_ints", Ints{7, 8, 9}});
  Attributes probable = three;
  probable.set({"prob_a", Floats{-1, -1.5F, -2}});
  probable.set({"prob_b", Floats{0.1F, 0, -0.1F}});
  return {{"pairs", {x}, three, 2}, {"probabilities", {x}, probable, 2}};
}

}  // namespace

/// ONNX-ML's support vector machines.
void register_ml_svm(OpRegistry& registry) {
  const std::vector<AttributeDef> svm{
      {"coefficients", AttributeType::numbers}, {"kernel_params", AttributeType::numbers},
      {"kernel_type", AttributeType::text},     {"post_transform", AttributeType::text},
      {"rho", AttributeType::numbers},          {"support_vectors", AttributeType::numbers}};
  std::vector<AttributeDef> regressor = svm;
  regressor.push_back({"n_supports", AttributeType::integer});
  regressor.push_back({"one_class", AttributeType::integer});
  registry.add({.name = "SVMRegressor",
                .domain = kMlDomain,
                .since = {{1}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = regressor,
                .infer = infer_svm_regressor,
                .backward = kInferenceOnly,
                .samples = svm_regressor_samples});
  std::vector<AttributeDef> classifier = svm;
  for (const char* name : {"prob_a", "prob_b"}) {
    classifier.push_back({name, AttributeType::numbers});
  }
  classifier.push_back({"vectors_per_class", AttributeType::integers});
  classifier.push_back({"classlabels_ints", AttributeType::integers});
  classifier.push_back({"classlabels_strings", AttributeType::texts});
  registry.add({.name = "SVMClassifier",
                .domain = kMlDomain,
                .since = {{1}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}, {"Z"}},
                .attributes = classifier,
                .infer = infer_svm_classifier,
                .upgrade = upgrade_classifier,
                .backward = kInferenceOnly,
                .samples = svm_classifier_samples});
}

}  // namespace graft
