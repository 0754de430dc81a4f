#include "core/graph/attribute.h"

#include <gtest/gtest.h>

#include "core/graph/graph.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

TEST(Attribute, NumbersKeepTheirKindAndWidth) {
  const std::int64_t wide = std::int64_t{1} << 40;
  EXPECT_EQ(Attributes({{"a", wide}}).get_int("a", 0), wide);
  EXPECT_EQ(Attributes({{"a", 3}}).get_int("a", 0), 3);
  EXPECT_EQ(Attributes({{"a", 3U}}).get_int("a", 0), 3);
  EXPECT_EQ(Attributes({{"a", true}}).get_int("a", 0), 1);
  EXPECT_EQ(Attributes({{"a", 0.5}}).get_float("a", 0), 0.5F);
  EXPECT_EQ(Attributes({{"a", 0.5F}}).get_float("a", 0), 0.5F);
}

TEST(Attribute, OtherKinds) {
  const Attributes attributes{{"s", "text"},
                              {"i", std::vector<std::int64_t>{1, 2}},
                              {"f", std::vector<float>{0.5F}},
                              {"t", Tensor::scalar(2.0F)}};
  EXPECT_EQ(attributes.get_string("s", ""), "text");
  EXPECT_EQ(attributes.get_ints("i"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(attributes.get_floats("f"), std::vector<float>{0.5F});
  EXPECT_EQ(to_double(attributes.get_tensor("t")), std::vector<double>{2});
}

TEST(Attribute, AbsentGivesTheFallback) {
  const Attributes none;
  EXPECT_EQ(none.get_int("a", -1), -1);
  EXPECT_EQ(none.get_string("a", "x"), "x");
  EXPECT_EQ(none.get_ints("a", {7}), std::vector<std::int64_t>{7});
  EXPECT_FALSE(none.get_tensor("a").defined());
}

TEST(Attribute, WrongTypeIsNamed) {
  const Attributes attributes{{"axis", 0.5F}};
  const Error error = error_of([&] { attributes.get_int("axis", 0); });
  EXPECT_EQ(error.kind(), ErrorKind::type);
  EXPECT_STREQ(error.what(), "attribute 'axis' is of type float, wanted int");
}

TEST(Attribute, EveryAlternativeHasItsTypeName) {
  EXPECT_EQ(type_name(OpaqueValue{}), "opaque");
  EXPECT_EQ(type_name(std::vector<Tensor>{}), "tensors");
  EXPECT_EQ(type_name(std::shared_ptr<Graph>()), "graph");
  EXPECT_EQ(type_name(std::vector<std::shared_ptr<Graph>>{}), "graphs");
}

TEST(Attributes, SetReplacesInPlaceAndEraseForgets) {
  Attributes attributes{{"a", 1}, {"b", 2}};
  attributes.set({"a", 3});
  attributes.set({"c", 4});
  EXPECT_EQ(attributes.begin()->name, "a");
  EXPECT_EQ(attributes.get_int("a", 0), 3);
  EXPECT_EQ(attributes.size(), 3U);
  attributes.erase("b");
  attributes.erase("b");
  EXPECT_FALSE(attributes.has("b"));
  EXPECT_EQ(attributes.size(), 2U);
}

}  // namespace
}  // namespace graft
