#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;
using Ints = std::vector<std::int64_t>;

/// The words 7 and 9 and the pair (7, 8).
Attributes words(const char* mode, int skips) {
  return {{"mode", mode},
          {"min_gram_length", 1},
          {"max_gram_length", 2},
          {"max_skip_count", skips},
          {"ngram_counts", Ints{0, 2}},
          {"ngram_indexes", Ints{2, 0, 1}},
          {"pool_int64s", Ints{7, 9, 7, 8}}};
}
Tensor text() {
  return Tensor::from<std::int64_t>({5}, {7, 8, 7, 5, 8});
}

TEST(TfIdfVectorizer, CountsNGrams) {
  EXPECT_THAT(floats(call_op("TfIdfVectorizer", {text()}, words("TF", 0))[0]),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(floats(call_op("TfIdfVectorizer", {text()}, words("TF", 1))[0]),
              ElementsAre(0, 2, 2));
  EXPECT_THAT(floats(call_op("TfIdfVectorizer", {text()}, words("TF", 1000000000))[0]),
              ElementsAre(0, 3, 2));
}

TEST(TfIdfVectorizer, Weighs) {
  Attributes attributes = words("TFIDF", 1);
  attributes.set({"weights", std::vector<float>{1, 10, 100}});
  EXPECT_THAT(floats(call_op("TfIdfVectorizer", {text()}, attributes)[0]), ElementsAre(0, 20, 200));
  attributes.set({"mode", "IDF"});
  EXPECT_THAT(floats(call_op("TfIdfVectorizer", {text()}, attributes)[0]), ElementsAre(0, 10, 100));
}

TEST(TfIdfVectorizer, ManyRowsOfNothingEnd) {
  Attributes nothing = words("TF", 0);
  for (const char* list : {"ngram_indexes", "pool_int64s"}) nothing.set({list, Ints{}});
  nothing.set({"ngram_counts", Ints{0}});
  const Shape rows{std::int64_t{1} << 60, 0};
  const Tensor x = Tensor::empty(DType::i64, rows);
  EXPECT_EQ(call_op("TfIdfVectorizer", {x}, nothing)[0].shape(), rows);
}

TEST(TfIdfVectorizer, RefusesWhatDoesNotFit) {
  const auto kind = [](const Attribute& changed) {
    Attributes attributes = words("TF", 0);
    attributes.set(changed);
    return kind_of([&] { call_op("TfIdfVectorizer", {text()}, attributes); });
  };
  EXPECT_EQ(kind({"mode", "IF"}), ErrorKind::model);
  EXPECT_EQ(kind({"min_gram_length", 3}), ErrorKind::shape);
  EXPECT_EQ(kind({"ngram_counts", Ints{0, 3}}), ErrorKind::shape);
  EXPECT_EQ(kind({"ngram_counts", Ints{2, 0}}), ErrorKind::shape);
  EXPECT_EQ(kind({"ngram_counts", Ints{0, 9}}), ErrorKind::shape);
  EXPECT_EQ(kind({"ngram_indexes", Ints{0}}), ErrorKind::shape);
  EXPECT_EQ(kind({"ngram_indexes", Ints{0, -1, 2}}), ErrorKind::shape);
  EXPECT_EQ(kind({"pool_strings", AttributeValue(std::vector<std::string>{"a"})}),
            ErrorKind::model);
}

}  // namespace
}  // namespace graft
