#include "core/base/regex.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/core/error_of.h"

namespace graft {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  return Regex(pattern).full_match(text);
}

TEST(Regex, TheWholeTextMustMatch) {
  EXPECT_TRUE(matches("abc", "abc"));
  EXPECT_FALSE(matches("abc", "abcd"));
  EXPECT_FALSE(matches("abc", "ab"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("", "a"));
}

TEST(Regex, RepeatsAndChooses) {
  EXPECT_TRUE(matches("a*b+c?", "bb"));
  EXPECT_FALSE(matches("a*b+c?", "ac"));
  EXPECT_TRUE(matches("(ab|cd){2,3}", "abcdab"));
  EXPECT_FALSE(matches("(ab|cd){2,3}", "ab"));
  EXPECT_FALSE(matches("(ab|cd){2,3}", "abababab"));
  EXPECT_TRUE(matches("(?:a|)b", "b"));
  EXPECT_TRUE(matches("a{x", "a{x")) << "a brace that is no count";
}

TEST(Regex, KnowsClasses) {
  EXPECT_TRUE(matches(R"([\w.\-]+@\d\S)", "a.b-c@1x"));
  EXPECT_FALSE(matches("[^a-c]", "b"));
  EXPECT_TRUE(matches("[]x]", "]"));
  EXPECT_TRUE(matches("[[:alpha:]]+", "abC"));
  EXPECT_FALSE(matches("[[:^alpha:]]", "a"));
  EXPECT_FALSE(matches(".", "\n"));
  EXPECT_TRUE(matches(R"(\x41\x{e9})", "A\u00e9"));
  EXPECT_TRUE(matches(".", "\u00e9")) << "one character of two bytes";
}

TEST(Regex, KnowsEdges) {
  EXPECT_TRUE(matches("(\\W|^)ab(\\W|$)", "ab"));
  EXPECT_TRUE(matches("(\\W|^)ab(\\W|$)", " ab!"));
  EXPECT_FALSE(matches("a^b", "ab"));
  EXPECT_TRUE(matches(R"(a\b-)", "a-"));
  EXPECT_FALSE(matches(R"(a\bb)", "ab"));
}

TEST(Regex, KnowsFlagsAndUnicodeClasses) {
  EXPECT_TRUE(matches("(?i)head.*", "HEAD.weight"));
  EXPECT_TRUE(matches(R"(\p{Greek}\pL)", "\u03b1b"));
  EXPECT_TRUE(matches(R"(\Qa.b\E)", "a.b"));
  EXPECT_FALSE(matches(".", "\xff")) << "no UTF-8";
}

/// A backtracking matcher takes 2^40 steps for these.
TEST(Regex, TakesTimeLinearInTheText) {
  EXPECT_FALSE(matches("(a+)+b", std::string(40, 'a')));
  EXPECT_FALSE(matches("(a|a)*b", std::string(10'000, 'a')));
  EXPECT_TRUE(matches("(a*)*", std::string(10'000, 'a')));
}

TEST(Regex, RefusesWhatIsMalformed) {
  for (const char* pattern : {"(", ")", "[a", "*", "a{3,2}", "\\", "[z-a]", "[[:x:]]", "\\xg",
                              "(?=a)", "a{1001}", "(a{1000}){1000}", R"((a)\1)", "\xff"}) {
    EXPECT_EQ(kind_of([&] { Regex regex(pattern); }), ErrorKind::argument) << pattern;
  }
  EXPECT_EQ(kind_of([&] { Regex regex(std::string(100'000, '(')); }), ErrorKind::argument);
}

TEST(Regex, RefusesWhatIsTooLarge) {
  for (const char* pattern : {R"(\pL{1000})", R"((\pL{200}|\PL{300}){3})"}) {
    EXPECT_EQ(kind_of([&] { Regex regex(pattern); }), ErrorKind::unsupported) << pattern;
  }
}

}  // namespace
}  // namespace graft
