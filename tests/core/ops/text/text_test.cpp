#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/graph.h"
#include "core/ops/dynamic.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using Texts = std::vector<std::string>;

Tensor texts(const Texts& values) {
  return Tensor::from_strings({static_cast<std::int64_t>(values.size())}, values);
}

std::vector<Datum> call(std::string_view op, const std::vector<Datum>& inputs,
                        Attributes attributes = {}) {
  Graph graph;
  return call_dynamic(*graph.add_node(op, "", {}, {"y"}, std::move(attributes)), inputs);
}

TEST(Text, ConcatBroadcasts) {
  const Tensor column = Tensor::from_strings({2, 1}, {"a", "b"});
  const Tensor joined = call("StringConcat", {column, texts({"x", "y"})})[0].tensor();
  EXPECT_EQ(joined.shape(), (Shape{2, 2}));
  EXPECT_THAT(joined.strings(), ElementsAre("ax", "ay", "bx", "by"));
}

TEST(Text, EqualComparesStrings) {
  const Tensor same =
      call("Equal", {texts({"a", "b"}), Tensor::from_strings({}, {"b"})})[0].tensor();
  EXPECT_THAT(same.values<const bool>(), ElementsAre(false, true));
}

TEST(Text, SplitPadsToTheLongest) {
  const auto by_dot = call("StringSplit", {texts({"a..b", "c", ""})}, {{"delimiter", "."}});
  EXPECT_EQ(by_dot[0].tensor().shape(), (Shape{3, 3}));
  EXPECT_THAT(by_dot[0].tensor().strings(), ElementsAre("a", "", "b", "c", "", "", "", "", ""));
  EXPECT_THAT(to_int64(by_dot[1].tensor()), ElementsAre(3, 1, 1));
}

TEST(Text, SplitWithoutDelimiterTakesWords) {
  const auto words = call("StringSplit", {texts({"  a  b c ", ""})}, {{"maxsplit", 1}});
  EXPECT_THAT(words[0].tensor().strings(), ElementsAre("a", "b c ", "", ""));
  EXPECT_THAT(to_int64(words[1].tensor()), ElementsAre(2, 0));
}

TEST(Text, NormalizerDropsStopWords) {
  const Attributes lower{{"case_change_action", "LOWER"},
                         {"stopwords", AttributeValue(Texts{"Monday"})}};
  const auto kept = [](const Tensor& x, const Attributes& attributes) {
    return call("StringNormalizer", {x}, attributes)[0].tensor().strings();
  };
  EXPECT_THAT(kept(texts({"MONDAY", "Tuesday"}), lower), ElementsAre("tuesday"));
  EXPECT_THAT(kept(texts({"monday"}), lower), ElementsAre("")) << "one empty string";
  Attributes exact = lower;
  exact.set({"is_case_sensitive", 1});
  EXPECT_THAT(kept(texts({"MONDAY", "Monday"}), exact), ElementsAre("monday"));
  EXPECT_EQ(kind_of([] {
              call("StringNormalizer", {texts({"x"})}, {{"case_change_action", "UP"}});
            }),
            ErrorKind::model);
}

TEST(Text, RegexFullMatchWantsTheWholeText) {
  const Tensor x = Tensor::from_strings({2, 1}, {"head.weight", "my head.weight"});
  const Tensor matches =
      call("RegexFullMatch", {x}, {{"pattern", "head\\.(weight|bias)"}})[0].tensor();
  EXPECT_EQ(matches.shape(), (Shape{2, 1}));
  EXPECT_THAT(matches.values<const bool>(), ElementsAre(true, false));
}

/// Before it runs, with the node's name.
TEST(Text, RegexFullMatchRefusesPatternsAtInference) {
  const auto make = [](const char* pattern) {
    return error_of([&] {
      testing::OneNode("RegexFullMatch", "", {texts({"x"})}, 1, {{"pattern", pattern}});
    });
  };
  EXPECT_EQ(make("(").kind(), ErrorKind::model);
  EXPECT_THAT(make("(").what(), ::testing::StartsWith("RegexFullMatch"));
  EXPECT_EQ(make("\\pL{1000}").kind(), ErrorKind::unsupported);
}

}  // namespace
}  // namespace graft
