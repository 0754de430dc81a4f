#include "core/base/words.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(Words, AreTakenOneByOne) {
  std::string_view lines = "one  2\n\n\tthree";
  std::string_view line;
  ASSERT_TRUE(take_line(lines, line));
  EXPECT_EQ(take_word(line), "one");
  EXPECT_EQ(take_integer(line), 2);
  EXPECT_EQ(take_word(line), "");
  EXPECT_EQ(take_integer(line), 0);
  ASSERT_TRUE(take_line(lines, line));
  EXPECT_EQ(line, "");
  ASSERT_TRUE(take_line(lines, line));
  EXPECT_EQ(take_integer(line), 0);
  EXPECT_FALSE(take_line(lines, line));
}

}  // namespace
}  // namespace graft
