#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

TEST(ReverseSequence, TurnsTheFirstSteps) {
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor lengths = Tensor::from<std::int64_t>({2}, {2, 3});
  EXPECT_THAT(
      floats(call_op("ReverseSequence", {x, lengths}, {{"batch_axis", 0}, {"time_axis", 1}})[0]),
      ElementsAre(2, 1, 3, 6, 5, 4));
  for (const std::int64_t axis : {std::int64_t{1}, INT64_MAX, INT64_MIN}) {
    const Attributes same{{"batch_axis", axis}, {"time_axis", axis}};
    EXPECT_EQ(kind_of([&] { call_op("ReverseSequence", {x, lengths}, same); }), ErrorKind::model);
  }
}

}  // namespace
}  // namespace graft
