#include "core/base/time_limit.h"

#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/other_limits.h"

namespace graft {
namespace {

Limits no_time() {
  Limits limits;
  limits.import_seconds = 0;
  return limits;
}

void check_often() {
  for (int i = 0; i < 1000; ++i) check_time();
}

TEST(TimeLimit, EndsWhatTakesLonger) {
  const testing::OtherLimits limits(no_time());
  const TimeLimit time_limit;
  const Error error = error_of(check_often);
  EXPECT_EQ(error.kind(), ErrorKind::model);
  EXPECT_THAT(error.what(),
              ::testing::HasSubstr("the limit is 0; --allow seconds=NUMBER raises it"));
}

TEST(TimeLimit, HoldsOnlyWhileOneLives) {
  const testing::OtherLimits limits(no_time());
  {
    const TimeLimit outer;
    { const TimeLimit inner; }
    EXPECT_THROW(check_often(), Error);
  }
  check_often();
}

TEST(TimeLimit, LeavesTimeEnough) {
  const TimeLimit time_limit;
  check_often();
}

}  // namespace
}  // namespace graft
