#include "core/graph/attribute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

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

TEST(Attributes, CopiesShareTheirListUntilOneChanges) {
  const Attributes original{{"a", 1}, {"b", 2}};
  Attributes set = original;
  Attributes erased = original;
  Attributes changed = original;
  EXPECT_TRUE(set.shares_list(original));
  set.set({"a", 3});
  erased.erase("a");
  changed.change_each([](Attribute& attribute) { attribute.value = std::int64_t{7}; });
  EXPECT_EQ(set.get_int("a", 0), 3);
  EXPECT_FALSE(erased.has("a"));
  EXPECT_EQ(changed.get_int("b", 0), 7);
  EXPECT_EQ(original.get_int("a", 0), 1);
  EXPECT_EQ(original.get_int("b", 0), 2);
  Attributes same = original;
  same.erase("c");
  EXPECT_TRUE(same.shares_list(original));
}

TEST(Attributes, NodesOfAGraphShareLists) {
  Graph graph;
  Value* const x = graph.add_input("x", {});
  const auto add = [&](Attributes attributes) {
    return graph.add_node("Op", "", {x}, {""}, std::move(attributes));
  };
  const Node* const one = add({{"axes", std::vector<std::int64_t>{1, 2}}, {"alpha", 0.5F}});
  const Node* const same = add({{"axes", std::vector<std::int64_t>{1, 2}}, {"alpha", 0.5F}});
  const Node* const other = add({{"axes", std::vector<std::int64_t>{1, 2}}, {"alpha", -0.0F}});
  const Node* const zero = add({{"axes", std::vector<std::int64_t>{1, 2}}, {"alpha", 0.0F}});
  EXPECT_TRUE(same->attributes.shares_list(one->attributes));
  EXPECT_EQ(other->attributes.get_float("alpha", 1), 0.0F);
  EXPECT_TRUE(std::signbit(other->attributes.get_float("alpha", 1)));
  EXPECT_FALSE(std::signbit(zero->attributes.get_float("alpha", 1)));
  // A tensor must not live on when its node is gone, a body belongs to its node.
  const Tensor tensor = Tensor::scalar(1.0F);
  const Node* const constant = add({{"value", tensor}});
  EXPECT_FALSE(add({{"value", tensor}})->attributes.shares_list(constant->attributes));
  Attribute noted{"axis", 1};
  noted.preserved = "kept";
  EXPECT_EQ(add({noted})->attributes.begin()->preserved, "kept");
  EXPECT_TRUE(add({{"axis", 1}})->attributes.begin()->preserved.empty());
}

}  // namespace
}  // namespace graft
