#include <algorithm>

#include "core/ops/ml/ml_scores.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

constexpr NotDifferentiable kPreparesFeatures{
    "preparation of features is run, not trained through; write it in ordinary ops for that"};

void infer_floats(InferContext& context) {
  const SymShape* const shape = context.shape(0);
  context.set_output(0, DType::f32, shape == nullptr ? std::nullopt : std::optional(*shape));
}

/// x [..., F], indices [k]: [..., k], at least rank 2.
void infer_array_feature_extractor(InferContext& context) {
  const SymShape* const x = context.shape(0);
  const SymShape* const indices = context.shape(1);
  if (x == nullptr || indices == nullptr) return context.set_output(0, context.dtype(0));
  context.require_rank(0, 1, INT32_MAX);
  std::vector<Dim> dims = x->dims();
  dims.back() = product(*indices, 0, indices->rank());
  if (dims.size() == 1) dims.insert(dims.begin(), 1);
  context.set_output(0, context.dtype(0), SymShape(std::move(dims)));
}

/// Inputs [N,C] or [C]: [N, all C].
void infer_feature_vectorizer(InferContext& context) {
  Dim count = 1;
  Dim width = 0;
  for (int i = 0; i < context.input_count(); ++i) {
    context.require_rank(i, 1, 2);
    const SymShape* const shape = context.shape(i);
    if (shape == nullptr) return context.set_output(0, DType::f32, unknown_dims(2));
    if (shape->rank() == 2) count = (*shape)[0];
    const Dim& own = (*shape)[shape->rank() - 1];
    width =
        width.is_known() && own.is_known() ? Dim(checked_add(width.value(), own.value())) : Dim();
  }
  context.set_output(0, DType::f32, SymShape{count, width});
}

using Floats = std::vector<float>;

std::vector<Sample> normalizer_samples() {
  const SampleInput x{{3, 4}};
  return {{"max", {{.shape = {3, 4}, .low = 0.5}}},
          {"l1", {x}, {{"norm", "L1"}}},
          {"l2", {x}, {{"norm", "L2"}}},
          {"zeros", {{.shape = {1, 2}, .values = {0, 0}}}, {{"norm", "L2"}}}};
}

std::vector<Sample> scaler_samples() {
  const SampleInput x{{3, 2}};
  return {{"each", {x}, {{"offset", Floats{1, -1}}, {"scale", Floats{2, 0.5F}}}},
          {"one", {x}, {{"offset", Floats{1}}, {"scale", Floats{3}}}},
          {"integers",
           {{.shape = {2, 2}, .low = -5, .high = 5, .dtype = DType::i64}},
           {{"offset", Floats{0}}, {"scale", Floats{0.5F}}}}};
}

std::vector<Sample> binarizer_samples() {
  return {{"zero", {{{3, 4}}}}, {"threshold", {{{3, 4}}}, {{"threshold", 0.25F}}}};
}

std::vector<Sample> imputer_samples() {
  const SampleInput x{.shape = {2, 2}, .values = {1, 2, 2, 3}};
  return {{"each", {x}, {{"imputed_value_floats", Floats{7, 8}}, {"replaced_value_float", 2.0F}}},
          {"integers",
           {{.shape = {3}, .values = {1, 0, 5}, .dtype = DType::i64}},
           {{"imputed_value_int64s", std::vector<std::int64_t>{9}}, {"replaced_value_int64", 0}}}};
}

std::vector<Sample> array_feature_extractor_samples() {
  const SampleInput indices{.shape = {2}, .values = {2, 0}, .dtype = DType::i64};
  return {{"matrix", {{{2, 3}}, indices}}, {"vector", {{{3}}, indices}}};
}

std::vector<Sample> feature_vectorizer_samples() {
  return {{"two", {{{2, 3}}, {{2, 1}}}}, {"vectors", {{{3}}, {{2}}}}};
}

}  // namespace

/// ONNX-ML's ops that prepare features.
void register_ml_features(OpRegistry& registry) {
  const auto add = [&](std::string_view name, std::vector<AttributeDef> attributes, Infer infer,
                       Samples samples) {
    registry.add({.name = name,
                  .domain = kMlDomain,
                  .since = {{1}},
                  .inputs = {{"X"}},
                  .outputs = {{"Y"}},
                  .attributes = std::move(attributes),
                  .infer = infer,
                  .backward = kPreparesFeatures,
                  .samples = samples});
  };
  add("Normalizer", {{"norm", AttributeType::text}}, infer_floats, normalizer_samples);
  add("Scaler", {{"offset", AttributeType::numbers}, {"scale", AttributeType::numbers}},
      infer_floats, scaler_samples);
  add("Binarizer", {{"threshold", AttributeType::number}}, infer_same, binarizer_samples);
  add("Imputer",
      {{"imputed_value_floats", AttributeType::numbers},
       {"imputed_value_int64s", AttributeType::integers},
       {"replaced_value_float", AttributeType::number},
       {"replaced_value_int64", AttributeType::integer}},
      infer_same, imputer_samples);
  registry.add({.name = "ArrayFeatureExtractor",
                .domain = kMlDomain,
                .since = {{1}},
                .inputs = {{"X"}, {"Y"}},
                .outputs = {{"Z"}},
                .infer = infer_array_feature_extractor,
                .is_dynamic = true,  // it takes strings too
                .backward = kPreparesFeatures,
                .samples = array_feature_extractor_samples});
  registry.add({.name = "FeatureVectorizer",
                .domain = kMlDomain,
                .since = {{1}},
                .inputs = {{"X", Arity::variadic}},
                .outputs = {{"Y"}},
                .attributes = {{"inputdimensions", AttributeType::integers}},
                .infer = infer_feature_vectorizer,
                .only_moves = true,
                .backward = kPreparesFeatures,
                .samples = feature_vectorizer_samples});
}

}  // namespace graft
