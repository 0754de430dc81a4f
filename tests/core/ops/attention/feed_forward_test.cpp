#include <gmock/gmock.h>

#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_op;
using ::testing::ElementsAre;
using testing::floats;

TEST(FeedForward, TwoRowsByHand) {
  const Tensor x = Tensor::from<float>({2, 1}, {2.0F, -1.0F});
  const Tensor w1 = Tensor::from<float>({1, 3}, {1.0F, -2.0F, 0.5F});
  const Tensor b1 = Tensor::from<float>({3}, {1.0F, 0.0F, -2.0F});
  const Tensor w2 = Tensor::from<float>({3, 2}, {1.0F, 10.0F, 2.0F, 20.0F, 3.0F, 30.0F});
  const Tensor b2 = Tensor::from<float>({2}, {0.5F, -0.5F});
  // h = (3, -4, -1), (0, 2, -2.5); a = (3, 0, 0), (0, 2, 0).
  const Attributes relu{{"activation", "Relu"}};
  const Tensor y = call_internal_op("FeedForward", {x, w1, w2, b1, b2}, relu)[0];
  EXPECT_THAT(floats(y), ElementsAre(3.5F, 29.5F, 4.5F, 39.5F));
  // da = dy w2^T = (1, 2, 3), (10, 20, 30), of which a > 0 lets (1, 0, 0), (0, 20, 0) through.
  const Tensor dy = Tensor::from<float>({2, 2}, {1.0F, 0.0F, 0.0F, 1.0F});
  const std::vector<Tensor> d = call_internal_op("FeedForwardGrad", {x, w1, w2, dy, b1}, relu, 4);
  EXPECT_THAT(floats(d[0]), ElementsAre(1.0F, -40.0F));
  EXPECT_THAT(floats(d[1]), ElementsAre(2.0F, -20.0F, 0.0F));
  EXPECT_THAT(floats(d[2]), ElementsAre(3.0F, 0.0F, 0.0F, 2.0F, 0.0F, 0.0F));
  EXPECT_THAT(floats(d[3]), ElementsAre(1.0F, 20.0F, 0.0F));
}

TEST(FeedForward, IsTheSameAsItsParts) {
  const auto numbers = [](const Shape& shape, int step) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.size(); ++i) {
      values.push_back(static_cast<double>(i * step % 37 - 18) / 20.0);
    }
    return Tensor::from<double>(shape, values);
  };
  const Tensor x = numbers({4, 50, 20}, 7);  // more rows than one block
  const Tensor w1 = numbers({20, 150}, 5);   // more hidden columns than two ranges
  const Tensor w2 = numbers({150, 3}, 11);
  const Tensor h = call_op("MatMul", {x, w1})[0];
  const Tensor wanted = call_op("MatMul", {call_op("Tanh", {h})[0], w2})[0];
  const std::vector<double> y =
      to_double(call_internal_op("FeedForward", {x, w1, w2}, {{"activation", "Tanh"}})[0]);
  const std::vector<double> parts = to_double(wanted);
  ASSERT_EQ(y.size(), parts.size());
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], parts[i], 1e-12) << i;
}

TEST(FeedForward, ActivationsAreOpsWhoseGradientIsOneOp) {
  const Tensor x = Tensor::zeros(DType::f32, {2, 3});
  const auto code = [&](const char* activation) {
    return kind_of([&] {
      call_internal_op("FeedForward",
                       {x, Tensor::zeros(DType::f32, {3, 4}), Tensor::zeros(DType::f32, {4, 5})},
                       {{"activation", activation}});
    });
  };
  EXPECT_EQ(code("Softplus"), ErrorKind::model);
  EXPECT_EQ(code(""), ErrorKind::model);
}

}  // namespace
}  // namespace graft
