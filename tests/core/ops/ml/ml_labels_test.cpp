#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/graph.h"
#include "core/ops/dynamic.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::ElementsAre;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Texts = std::vector<std::string>;

Tensor texts(const Texts& values) {
  return Tensor::from_strings({static_cast<std::int64_t>(values.size())}, values);
}

Datum call(std::string_view op, const Datum& input, Attributes attributes) {
  Graph graph;
  const Node* const node = graph.add_node(op, "ai.onnx.ml", {}, {"y"}, std::move(attributes));
  return call_dynamic(*node, std::vector{input}).front();
}

TEST(MlLabels, EncoderMapsKeysToValues) {
  const Attributes attributes{{"keys_strings", AttributeValue(Texts{"Amy", "Sally"})},
                              {"values_int64s", AttributeValue(Ints{5, 6})}};
  EXPECT_THAT(to_int64(call("LabelEncoder", texts({"Dori", "Amy", "Sally"}), attributes).tensor()),
              ElementsAre(-1, 5, 6));
}

TEST(MlLabels, NanIsAKey) {
  const Attributes attributes{{"keys_floats", AttributeValue(Floats{NAN, 0})},
                              {"values_strings", AttributeValue(Texts{"none", "zero"})}};
  const Tensor x = Tensor::from<float>({3}, {-0.0F, -NAN, 1});
  EXPECT_THAT(call("LabelEncoder", x, attributes).tensor().strings(),
              ElementsAre("zero", "none", "_Unused"));
}

TEST(MlLabels, OneHotEncoderMayRefuseOthers) {
  Attributes attributes{{"cats_int64s", AttributeValue(Ints{3, 7})}};
  const Tensor x = Tensor::from<std::int64_t>({2}, {7, 9});
  const Tensor y = call("OneHotEncoder", x, attributes).tensor();
  EXPECT_EQ(y.shape(), (Shape{2, 2}));
  EXPECT_THAT(y.values<const float>(), ElementsAre(0, 1, 0, 0));
  attributes.set({"zeros", 0});
  EXPECT_EQ(kind_of([&] { call("OneHotEncoder", x, attributes); }), ErrorKind::argument);
}

TEST(MlLabels, DictVectorizerFollowsTheVocabulary) {
  const Dictionary map{texts({"a", "c"}), Tensor::from<float>({2}, {4, 8})};
  const Tensor y = call("DictVectorizer", map,
                        {{"string_vocabulary", AttributeValue(Texts{"a", "b", "c", "z"})}})
                       .tensor();
  EXPECT_THAT(y.values<const float>(), ElementsAre(4, 0, 8, 0));
}

TEST(MlLabels, ZipMapMakesAMapForEachRow) {
  const Tensor x = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  const Datum maps = call("ZipMap", x, {{"classlabels_int64s", AttributeValue(Ints{7, 8})}});
  ASSERT_EQ(maps.sequence().items.size(), 2);
  const Dictionary& second = maps.sequence().items[1].dictionary();
  EXPECT_THAT(to_int64(second.keys), ElementsAre(7, 8));
  EXPECT_THAT(second.values.values<const float>(), ElementsAre(3, 4));
  EXPECT_EQ(kind_of([&] {
              call("ZipMap", x, {{"classlabels_int64s", AttributeValue(Ints{7})}});
            }),
            ErrorKind::shape);
}

}  // namespace
}  // namespace graft
