#include "core/base/rare_string.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(RareString, IsTheStringThatItWasGiven) {
  const RareString none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none, "");
  EXPECT_TRUE(RareString(std::string()).empty());
  const RareString some = "text";
  EXPECT_FALSE(some.empty());
  EXPECT_EQ(some, "text");
  const std::string& text = some;
  EXPECT_EQ(text, "text");
  EXPECT_EQ(sizeof(RareString), sizeof(void*));
}

TEST(RareString, ACopyIsItsOwn) {
  RareString first = "one";
  RareString second = first;
  first = "two";
  EXPECT_EQ(second, "one");
  second = first;
  first = {};
  EXPECT_EQ(first, "");
  EXPECT_EQ(second, "two");
  const RareString third = std::move(second);
  EXPECT_EQ(third, "two");
}

}  // namespace
}  // namespace graft
