#include <algorithm>

#include "core/ops/ml/ml_scores.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_linear_regressor(InferContext& context) {
  infer_regressor(context, DType::f32, context.attributes().get_int("targets", 1));
}

/// One row of coefficients for two classes tells them apart: the other has its negative.
void infer_linear_classifier(InferContext& context) {
  const auto labels = class_labels(context.node(), "classlabels_ints").size();
  infer_classifier(context, static_cast<std::int64_t>(std::max<std::size_t>(labels, 2)));
}

using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

std::vector<Sample> linear_regressor_samples() {
  const SampleInput x{{4, 3}};
  return {{"plain", {x}, {{"coefficients", Floats{1, -2, 0.5F}}}},
          {"two_targets",
           {x},
           {{"coefficients", Floats{1, -2, 0.5F, 0, 1, 2}},
            {"intercepts", Floats{0.25F, -1}},
            {"targets", 2}}}};
}

std::vector<Sample> linear_classifier_samples() {
  const SampleInput x{{4, 2}};
  return {{"three",
           {x},
           {{"coefficients", Floats{1, -2, 0.5F, 0, 1, 2}},
            {"intercepts", Floats{0.25F, -1, 0}},
            {"classlabels_ints", Ints{3, 4, 5}},
            {"post_transform", "SOFTMAX"}},
           2},
          {"two",
           {x},
           {{"coefficients", Floats{-1, 2, 1, -2}},
            {"intercepts", Floats{-0.25F, 0.25F}},
            {"classlabels_ints", Ints{0, 1}},
            {"post_transform", "LOGISTIC"}},
           2}};
}

}  // namespace

/// ONNX-ML's linear models.
void register_ml_linear(OpRegistry& registry) {
  registry.add({.name = "LinearRegressor",
                .domain = kMlDomain,
                .since = {{1}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = {{"coefficients", AttributeType::numbers},
                               {"intercepts", AttributeType::numbers},
                               {"post_transform", AttributeType::text},
                               {"targets", AttributeType::integer}},
                .infer = infer_linear_regressor,
                .backward = kInferenceOnly,
                .samples = linear_regressor_samples});
  registry.add({.name = "LinearClassifier",
                .domain = kMlDomain,
                .since = {{1}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}, {"Z"}},
                .attributes = {{"classlabels_ints", AttributeType::integers},
                               {"classlabels_strings", AttributeType::texts},
                               {"coefficients", AttributeType::numbers, true},
                               {"intercepts", AttributeType::numbers},
                               {"multi_class", AttributeType::integer},
                               {"post_transform", AttributeType::text}},
                .infer = infer_linear_classifier,
                .upgrade = upgrade_classifier,
                .backward = kInferenceOnly,
                .samples = linear_classifier_samples});
}

}  // namespace graft
