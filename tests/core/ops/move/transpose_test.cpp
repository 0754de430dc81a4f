#include <gmock/gmock.h>

#include <numeric>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

TEST(Transpose, ReversesByDefault) {
  const Tensor x = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor y = call_op("Transpose", {x})[0];
  EXPECT_EQ(y.shape(), Shape({3, 2}));
  EXPECT_THAT(floats(y), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Transpose, MovesChannelsLast) {
  const Tensor x = Tensor::from<float>({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor y = call_op("Transpose", {x}, {{"perm", std::vector<std::int64_t>{0, 2, 3, 1}}})[0];
  EXPECT_EQ(y.shape(), Shape({1, 1, 3, 2}));
  EXPECT_THAT(floats(y), ElementsAre(1, 4, 2, 5, 3, 6));
}

/// Whole tiles, the remainders on both sides, each element width.
TEST(Transpose, EveryElementOfALargeMatrix) {
  constexpr std::int64_t kRows = 83;
  constexpr std::int64_t kColumns = 101;
  std::vector<double> numbers(kRows * kColumns);
  std::iota(numbers.begin(), numbers.end(), 0.0);
  for (const DType dtype : {DType::f32, DType::f64, DType::i16, DType::u8, DType::i64}) {
    const Tensor x = Tensor::from({kRows, kColumns}, numbers).cast(DType::i64).cast(dtype);
    const std::vector<double> from = to_double(x);
    const std::vector<double> to = to_double(call_op("Transpose", {x})[0]);
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t column = 0; column < kColumns; ++column) {
        ASSERT_EQ(to[column * kRows + row], from[row * kColumns + column])
            << dtype << " " << row << " " << column;
      }
    }
  }
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
  const Tensor x = Tensor::zeros(DType::f32, {2, 3});
  for (const std::vector<std::int64_t>& perm :
       {std::vector<std::int64_t>{0, 0}, {0}, {0, 2}, {0, 1, 2}}) {
    EXPECT_EQ(kind_of([&] { call_op("Transpose", {x}, {{"perm", perm}}); }), ErrorKind::shape);
  }
}

}  // namespace
}  // namespace graft
