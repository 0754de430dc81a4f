#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/runtime/session.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft::testing {
namespace {

using ::testing::ElementsAre;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Texts = std::vector<std::string>;

/// One tree: x0 <= 0.5 ? leaf a : leaf b, each with one weight.
Attributes stump(const std::string& prefix, const Ints& ids, const Floats& weights) {
  Attributes attributes{{"nodes_treeids", AttributeValue(Ints{0, 0, 0})},
                        {"nodes_nodeids", AttributeValue(Ints{0, 1, 2})},
                        {"nodes_featureids", AttributeValue(Ints{0, 0, 0})},
                        {"nodes_modes", AttributeValue(Texts{"BRANCH_LEQ", "LEAF", "LEAF"})},
                        {"nodes_values", AttributeValue(Floats{0.5F, 0, 0})},
                        {"nodes_truenodeids", AttributeValue(Ints{1, 0, 0})},
                        {"nodes_falsenodeids", AttributeValue(Ints{2, 0, 0})}};
  attributes.set({prefix + "_treeids", AttributeValue(Ints{0, 0})});
  attributes.set({prefix + "_nodeids", AttributeValue(Ints{1, 2})});
  attributes.set({prefix + "_ids", AttributeValue(ids)});
  attributes.set({prefix + "_weights", AttributeValue(weights)});
  return attributes;
}

const Tensor& three() {
  static const Tensor x = Tensor::from<float>({3, 1}, {0.5F, 0.75F, NAN});
  return x;
}

TEST(MlTree, NanGoesWhereMissingValuesGo) {
  Attributes attributes = stump("target", {0, 0}, {10, 20});
  EXPECT_THAT(floats(call_ml("TreeEnsembleRegressor", three(), attributes)[0]),
              ElementsAre(10, 20, 20));
  attributes.set({"nodes_missing_value_tracks_true", AttributeValue(Ints{1, 0, 0})});
  EXPECT_THAT(floats(call_ml("TreeEnsembleRegressor", three(), attributes)[0]),
              ElementsAre(10, 20, 10));
}

/// All weights positive: the score is the probability of the second class.
TEST(MlTree, OneScoreServesTwoClasses) {
  Attributes attributes = stump("class", {0, 0}, {0.25F, 0.75F});
  attributes.set({"classlabels_int64s", AttributeValue(Ints{4, 5})});
  const auto results = call_ml("TreeEnsembleClassifier", three(), attributes, 2);
  EXPECT_THAT(to_int64(results[0]), ElementsAre(4, 5, 5));
  EXPECT_THAT(floats(results[1]), ElementsAre(0.75F, 0.25F, 0.25F, 0.75F, 0.25F, 0.75F));
}

/// Negative weights: the score is the distance from a border at 0.
TEST(MlTree, SignedScoresAreNegated) {
  Attributes attributes = stump("class", {0, 0}, {-2, 3});
  attributes.set({"classlabels_int64s", AttributeValue(Ints{0, 1})});
  const auto results = call_ml("TreeEnsembleClassifier", three(), attributes, 2);
  EXPECT_THAT(to_int64(results[0]), ElementsAre(0, 1, 1));
  EXPECT_THAT(floats(results[1]), ElementsAre(2, -2, -3, 3, -3, 3));
}

TEST(MlTree, OneClassHasTwoScoresAlsoWithoutWeights) {
  Attributes attributes = stump("class", {}, {});
  for (const char* name : {"class_treeids", "class_nodeids"}) {
    attributes.set({name, AttributeValue(Ints{})});
  }
  attributes.set({"classlabels_int64s", AttributeValue(Ints{4})});
  const auto results = call_ml("TreeEnsembleClassifier", three(), attributes, 2);
  EXPECT_THAT(to_int64(results[0]), ElementsAre(0, 0, 0));
  EXPECT_THAT(floats(results[1]), ElementsAre(1, 0, 1, 0, 1, 0));
}

TEST(MlTree, ClassNamesAreLookedUp) {
  Model model;
  model.set_opset("", 17);
  model.set_opset("ai.onnx.ml", 3);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("N"), 1}});
  Attributes attributes = stump("class", {0, 1}, {1, 1});
  attributes.set({"classlabels_strings", AttributeValue(Texts{"low", "high"})});
  Node* const node =
      graph.add_node("TreeEnsembleClassifier", "ai.onnx.ml", {x}, {"label", "scores"}, attributes);
  graph.add_output(node->output(0));
  Session session(model);
  const std::vector<Tensor> inputs{three()};
  EXPECT_THAT(session.run(inputs)[0].strings(), ElementsAre("low", "high", "high"));
}

TEST(MlTree, CirclesAreRefused) {
  Attributes attributes = stump("target", {0, 0}, {1, 2});
  attributes.set({"nodes_truenodeids", AttributeValue(Ints{0, 0, 0})});
  EXPECT_EQ(kind_of([&] { call_ml("TreeEnsembleRegressor", three(), attributes); }),
            ErrorKind::model);
}

TEST(MlTree, FeaturesBeyondTheSampleAreRefused) {
  for (const std::int64_t feature : {std::int64_t{1}, std::numeric_limits<std::int64_t>::max()}) {
    Attributes attributes = stump("target", {0, 0}, {1, 2});
    attributes.set({"nodes_featureids", AttributeValue(Ints{feature, 0, 0})});
    EXPECT_EQ(kind_of([&] { call_ml("TreeEnsembleRegressor", three(), attributes); }),
              ErrorKind::shape);
  }
}

}  // namespace
}  // namespace graft::testing
