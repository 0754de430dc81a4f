#include <gmock/gmock.h>

#include "tests/core/ops/call_op.h"

namespace graft::testing {
namespace {

using ::testing::ElementsAre;
using Ints = std::vector<std::int64_t>;
using Floats = std::vector<float>;

/// Also with more coefficients than features.
TEST(MlLinear, OneClassHasTwoScores) {
  const Tensor x = Tensor::from<float>({2, 1}, {2, -3});
  const auto results =
      call_ml("LinearClassifier", x,
              {{"coefficients", Floats{1, 5}}, {"classlabels_ints", AttributeValue(Ints{7})}}, 2);
  EXPECT_THAT(to_int64(results[0]), ElementsAre(7, 0));
  EXPECT_THAT(floats(results[1]), ElementsAre(-2, 2, 3, -3));
}

/// Rows and columns that hold nothing may be any number.
TEST(MlLinear, TablesOfNothingStaySmall) {
  constexpr std::int64_t kMany = std::int64_t{1} << 62;
  const Attributes targets{{"coefficients", Floats{1}}, {"targets", kMany}};
  const Tensor none = Tensor::zeros(DType::f32, {0, 0});
  EXPECT_EQ(call_ml("LinearRegressor", none, targets).front().shape(), (Shape{0, kMany}));
  const Tensor wide = Tensor::zeros(DType::f32, {0, kMany});
  EXPECT_EQ(call_ml("Scaler", wide, {}).front().shape(), wide.shape());
  EXPECT_EQ(call_ml("Normalizer", wide, {}).front().shape(), wide.shape());
}

}  // namespace
}  // namespace graft::testing
