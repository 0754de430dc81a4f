#include "core/base/error.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/core/error_of.h"

namespace graft {
namespace {

TEST(Error, CarriesKindAndJoinedText) {
  const Error error =
      error_of([] { fail(ErrorKind::shape, "softmax: axis ", 3, " out of range for rank ", 2); });
  EXPECT_EQ(error.kind(), ErrorKind::shape);
  EXPECT_STREQ(error.what(), "softmax: axis 3 out of range for rank 2");
}

TEST(Error, ZeroBytesOfANameDoNotEndTheText) {
  const Error error = error_of([] { fail(ErrorKind::model, std::string("\0x", 2), ": no"); });
  EXPECT_STREQ(error.what(), "\\x00x: no");
}

TEST(Error, EveryKindHasItsOwnName) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::numeric); ++kind) {
    names.insert(name(static_cast<ErrorKind>(kind)));
  }
  EXPECT_EQ(names.size(), 9U);
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace graft
