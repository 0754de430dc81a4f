#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/ops/kernel.h"
#include "core/ops/kernels/window.h"
#include "tests/core/error_of.h"
#include "tests/core/ops/call_op.h"

namespace graft {
namespace {

using testing::call_internal_op;
using testing::call_op;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using testing::floats;
using Ints = std::vector<std::int64_t>;

Ints indices(const Tensor& tensor) {
  return to_int64(tensor);
}

/// 1 ... 9
Tensor three_by_three() {
  return Tensor::from<float>({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST(MaxPool, IndicesCountOverTheWholeTensor) {
  const Tensor x = Tensor::from<float>({1, 2, 2, 2}, {1, 2, 3, 0, 5, 9, 7, 8});
  const auto y = call_op("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}}, 2);
  EXPECT_THAT(floats(y[0]), ElementsAre(3, 9));
  EXPECT_THAT(indices(y[1]), ElementsAre(2, 5));
  const auto columns =
      call_op("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}, {"storage_order", 1}}, 2);
  EXPECT_THAT(indices(columns[1]), ElementsAre(1, 6));
}

TEST(MaxPool, PaddingIsNeverTheMaximum) {
  const Tensor x = Tensor::from<float>({1, 1, 2}, {-3, -4});
  const Attributes attributes{{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}};
  EXPECT_THAT(floats(call_op("MaxPool", {x}, attributes)[0]), ElementsAre(-3, -3, -4));
}

TEST(MaxPool, CeilModeIgnoresWindowsThatStartInTheEndPadding) {
  const Tensor x = Tensor::from<float>({1, 1, 5}, {1, 2, 3, 4, 5});
  const auto y = [&](Attributes attributes) {
    attributes.set({"ceil_mode", 1});
    return floats(call_op("MaxPool", {x}, std::move(attributes))[0]);
  };
  EXPECT_THAT(y({{"kernel_shape", Ints{2}}, {"strides", Ints{2}}}), ElementsAre(2, 4, 5));
  // ceil((5 + 2 - 2) / 3) + 1 = 3 windows; the third would start at 5, in the padding.
  EXPECT_THAT(y({{"kernel_shape", Ints{2}}, {"strides", Ints{3}}, {"pads", Ints{1, 1}}}),
              ElementsAre(1, 4));
}

TEST(MaxPool, NanWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({1, 1, 4}, {1, nan, 2, 3});
  const auto y = floats(call_op("MaxPool", {x}, {{"kernel_shape", Ints{2}}})[0]);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_EQ(y[2], 3);
  EXPECT_TRUE(std::isnan(floats(call_op("GlobalMaxPool", {x})[0])[0]));
}

TEST(MaxPool, OfBytes) {
  const Tensor x = Tensor::from<std::int8_t>({1, 1, 3}, {-128, -128, -5});
  const auto y = call_op("MaxPool", {x}, {{"kernel_shape", Ints{2}}}, 2);
  EXPECT_THAT(to_double(y[0]), ElementsAre(-128, -5));
  EXPECT_THAT(indices(y[1]), ElementsAre(0, 2));
}

/// By MaxPoolGrad and from the argmax, which must agree.
std::vector<float> gradient(const Tensor& x, const Tensor& dy, const Attributes& attributes) {
  std::vector<float> dx = floats(call_internal_op("MaxPoolGrad", {x, dy}, attributes)[0]);
  const Tensor argmax = call_internal_op("MaxPoolWithArgmax", {x}, attributes, 2)[1];
  EXPECT_EQ(floats(call_internal_op("MaxPoolGradWithArgmax", {dy, argmax},
                                    with_shape(attributes, x.shape()))[0]),
            dx);
  return dx;
}

TEST(MaxPoolWithArgmax, AddsABiasAndRectifies) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({1, 2, 1, 6}, {1, 2, -3, -4, nan, 0, 5, 6, 0, 0, -8, -7});
  const Tensor bias = Tensor::from<float>({2}, {-1, 7});
  const auto y =
      call_internal_op("MaxPoolWithArgmax", {x, bias},
                       {{"kernel_shape", Ints{1, 2}}, {"strides", Ints{1, 2}}, {"relu", 1}}, 2);
  EXPECT_EQ(floats(y[0])[0], 1);
  EXPECT_EQ(floats(y[0])[1], 0);
  EXPECT_TRUE(std::isnan(floats(y[0])[2]));
  EXPECT_EQ(floats(y[0])[3], 13);
  EXPECT_EQ(floats(y[0])[4], 7);
  EXPECT_EQ(floats(y[0])[5], 0) << "what is 0 does not pass";
  EXPECT_THAT(to_double(y[1]), ElementsAre(1, 255, 0, 1, 0, 255));
}

TEST(MaxPoolGrad, GoesToTheFirstOfEqualMaxima) {
  const Tensor x = Tensor::from<float>({1, 1, 2, 2}, {1, 4, 4, 4});
  const Tensor dy = Tensor::from<float>({1, 1, 1, 1}, {5});
  EXPECT_THAT(gradient(x, dy, {{"kernel_shape", Ints{2, 2}}}), ElementsAre(0, 5, 0, 0));
}

TEST(MaxPoolGrad, GoesToTheFirstInLongRowsToo) {
  const Tensor x = Tensor::full(DType::f32, {1, 1, 2, 38}, 7);
  const Tensor dy = Tensor::full(DType::f32, {1, 1, 1, 19}, 3);
  const auto dx = gradient(x, dy, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_EQ(dx[i], i < 38 && i % 2 == 0 ? 3 : 0) << i;
}

TEST(MaxPoolGrad, NanTakesTheGradient) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({1, 1, 2, 4}, {1, 2, nan, 9, nan, 3, 4, 5});
  const Tensor dy = Tensor::from<float>({1, 1, 1, 2}, {10, 20});
  const Attributes attributes{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  EXPECT_THAT(gradient(x, dy, attributes), ElementsAre(0, 0, 20, 0, 10, 0, 0, 0));
}

TEST(MaxPoolGrad, AddsUpWhereWindowsOverlap) {
  const Tensor x = Tensor::from<float>({1, 1, 4}, {0, 9, 1, 2});
  const Tensor dy = Tensor::from<float>({1, 1, 3}, {10, 20, 30});
  EXPECT_THAT(gradient(x, dy, {{"kernel_shape", Ints{2}}}), ElementsAre(0, 30, 0, 30));
}

TEST(MaxPoolGrad, MinusInfinityIsAMaximumToo) {
  const float low = -std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from<float>({1, 1, 2}, {low, low});
  const Tensor dy = Tensor::from<float>({1, 1, 1}, {1});
  EXPECT_THAT(gradient(x, dy, {{"kernel_shape", Ints{2}}}), ElementsAre(1, 0));
}

TEST(MaxPoolWithArgmax, CountsTheElementsWithinTheImage) {
  // |_ 5 2| |7 1 4| |0 _ _|, then |_ 5 2| |5 2 7| ... |4 0 _|.
  const Tensor x = Tensor::from<float>({1, 1, 6}, {5, 2, 7, 1, 4, 0});
  const Attributes padded{{"kernel_shape", Ints{3}}, {"strides", Ints{3}}, {"pads", Ints{1, 2}}};
  const auto y = call_internal_op("MaxPoolWithArgmax", {x}, padded, 2);
  EXPECT_THAT(floats(y[0]), ElementsAre(5, 7, 0));
  EXPECT_THAT(to_double(y[1]), ElementsAre(0, 0, 0));
  const Attributes shifted{{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}};
  EXPECT_THAT(to_double(call_internal_op("MaxPoolWithArgmax", {x}, shifted, 2)[1]),
              ElementsAre(0, 2, 1, 0, 1, 0));
}

TEST(MaxPoolWithArgmax, RefusesWhatAByteCannotName) {
  const auto kind = [](std::int64_t width) {
    return kind_of([&] {
      call_internal_op("MaxPoolWithArgmax", {Tensor::zeros(DType::f32, {1, 1, width})},
                       {{"kernel_shape", Ints{width}}}, 2);
    });
  };
  EXPECT_EQ(kind(257), ErrorKind::shape);
  const Tensor dy = Tensor::zeros(DType::f32, {1, 1, 1});
  EXPECT_EQ(kind_of([&] {
              call_internal_op("MaxPoolGradWithArgmax", {dy, dy},
                               {{"kernel_shape", Ints{2}}, {"shape", Ints{1, 1, 2}}});
            }),
            ErrorKind::type);
}

/// Three channels of a 2 x 2 image, position by position: a maximum each.
TEST(MaxPool, OfBf16InChannelsLastOrder) {
  const Attributes window{{"kernel_shape", std::vector<std::int64_t>{2, 2}}};
  const auto bf16 = [](const Shape& shape, const std::vector<float>& numbers) {
    return Tensor::from<float>(shape, numbers).cast(DType::bf16);
  };
  const auto run = [](testing::OneNode& one, const std::vector<Tensor>& inputs) {
    for (Value* value : one.node->inputs()) value->layout = Layout::channels_last;
    for (int i = 0; i < one.node->output_count(); ++i) {
      one.node->output(i)->layout = Layout::channels_last;
    }
    return evaluate(*one.node, inputs);
  };
  const Tensor x = bf16({1, 3, 2, 2}, {1, 5, -1, 2, 4, -2, 0, 9, -3, 1, 1, -0.5F});
  testing::OneNode pool("MaxPool", "", {x}, 1, window);
  EXPECT_THAT(floats(run(pool, {x})[0].cast(DType::f32)), ElementsAre(2, 9, -0.5F));
  testing::OneNode keeping("MaxPoolWithArgmax", kInternalDomain, {x}, 2, window);
  const std::vector<Tensor> pooled = run(keeping, {x});
  EXPECT_THAT(floats(pooled[0].cast(DType::f32)), ElementsAre(2, 9, -0.5F));
  EXPECT_THAT(to_double(pooled[1]), ElementsAre(1, 2, 3));
  const Tensor dy = bf16({1, 3, 1, 1}, {10, 20, 30});
  testing::OneNode gradient("MaxPoolGradWithArgmax", kInternalDomain, {dy, pooled[1]}, 1,
                            with_shape(window, x.shape()));
  EXPECT_THAT(floats(run(gradient, {dy, pooled[1]})[0].cast(DType::f32)),
              ElementsAre(0, 0, 0, 10, 0, 0, 0, 20, 0, 0, 0, 30));
}

TEST(AveragePool, DividesByWhatTheWindowHolds) {
  const Attributes attributes{{"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 1, 0, 0}}};
  EXPECT_THAT(floats(call_op("AveragePool", {three_by_three()}, attributes)[0]),
              ElementsAre(1, 1.5F, 2.5F, 2.5F, 3, 4, 5.5F, 6, 7));
}

TEST(AveragePool, OrByTheWholeWindow) {
  const Attributes attributes{
      {"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 1, 0, 0}}, {"count_include_pad", 1}};
  EXPECT_THAT(floats(call_op("AveragePool", {three_by_three()}, attributes)[0]),
              ElementsAre(0.25F, 0.75F, 1.25F, 1.25F, 3, 4, 2.75F, 6, 7));
}

TEST(AveragePool, CountsPaddingOnlyUpToItsEnd) {
  // The second window covers elements 3, 4, one of padding and, by ceil_mode, one beyond it.
  const Tensor x = Tensor::from<float>({1, 1, 4}, {0, 0, 3, 6});
  const Attributes attributes{{"kernel_shape", Ints{4}},
                              {"strides", Ints{3}},
                              {"pads", Ints{1, 1}},
                              {"ceil_mode", 1},
                              {"count_include_pad", 1}};
  EXPECT_THAT(floats(call_op("AveragePool", {x}, attributes)[0]), ElementsAre(0.75F, 3));
}

TEST(AveragePoolGrad, SharesOutEvenly) {
  const Tensor dy = Tensor::from<float>({1, 1, 2}, {6, 12});
  const Attributes attributes{
      {"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"shape", Ints{1, 1, 5}}};
  EXPECT_THAT(floats(call_internal_op("AveragePoolGrad", {dy}, attributes)[0]),
              ElementsAre(2, 2, 6, 4, 4));
}

TEST(GlobalPool, ReducesAllSpatialAxes) {
  EXPECT_THAT(floats(call_op("GlobalAveragePool", {three_by_three()})[0]), ElementsAre(5));
  const Tensor best = call_op("GlobalMaxPool", {three_by_three()})[0];
  EXPECT_THAT(floats(best), ElementsAre(9));
  EXPECT_EQ(best.shape(), Shape({1, 1, 1, 1}));
}

TEST(Pool, RefusesWhatDoesNotFit) {
  const auto kind = [](Attributes attributes) {
    return kind_of([&] { call_op("MaxPool", {three_by_three()}, std::move(attributes)); });
  };
  EXPECT_EQ(kind({}), ErrorKind::model);
  EXPECT_EQ(kind({{"kernel_shape", Ints{}}}), ErrorKind::shape);
  EXPECT_EQ(kind({{"kernel_shape", Ints{2}}}), ErrorKind::shape);
  EXPECT_EQ(kind({{"kernel_shape", Ints{0, 2}}}), ErrorKind::shape);
  EXPECT_EQ(kind({{"kernel_shape", Ints{4, 1}}}), ErrorKind::shape);
  EXPECT_EQ(kind({{"kernel_shape", Ints{1LL << 62, 1}}}), ErrorKind::shape);
  EXPECT_EQ(kind({{"kernel_shape", Ints{2, 2}}, {"pads", Ints{2, 0, 0, 0}}}), ErrorKind::shape);
  EXPECT_EQ(kind({{"kernel_shape", Ints{2, 2}}, {"storage_order", 2}}), ErrorKind::model);
  EXPECT_EQ(kind_of([] {
              call_op("GlobalMaxPool", {Tensor::zeros(DType::f32, {1, 2, 0})});
            }),
            ErrorKind::shape);
}

TEST(Pool, AHugeWindowWithSamePaddingEnds) {
  const std::int64_t most = (1LL << 31) - 1;
  const Attributes attributes{{"kernel_shape", Ints{most, most}}, {"auto_pad", "SAME_UPPER"}};
  EXPECT_THAT(floats(call_op("MaxPool", {three_by_three()}, attributes)[0]),
              ElementsAre(9, 9, 9, 9, 9, 9, 9, 9, 9));
}

constexpr std::int64_t kMost = (1LL << 31) - 1;

TEST(Pool, CountsOfHugeWindowsDoNotOverflow) {
  const Tensor x = Tensor::from<float>({1, 1, 1, 1, 1}, {1});
  const Attributes attributes{{"kernel_shape", Ints(3, kMost)},
                              {"strides", Ints(3, kMost)},
                              {"pads", Ints(6, kMost - 1)},
                              {"count_include_pad", 1}};
  EXPECT_THAT(floats(call_op("AveragePool", {x}, attributes)[0]),
              ElementsAre(FloatEq(1.0F / std::pow(static_cast<float>(kMost), 3.0F))));
}

/// 2^22 * 2^21 * 2^21 is 0 in 64 bits, and that was few enough for a table of 256 taps.
TEST(Pool, HugeWindowsOverImagesInChannelsLastOrderAreNotTakenForSmallOnes) {
  const Ints kernel{1LL << 22, 1LL << 21, 1LL << 21};
  Ints pads;
  for (int i = 0; i < 6; ++i) pads.push_back(kernel[static_cast<std::size_t>(i % 3)] - 1);
  const Tensor x = Tensor::zeros(DType::f32, {1, 2, 8, 8, 8});
  testing::OneNode pool("MaxPool", "", {x}, 1,
                        {{"kernel_shape", kernel}, {"strides", kernel}, {"pads", pads}});
  for (Value* value : pool.node->inputs()) value->layout = Layout::channels_last;
  pool.node->output()->layout = Layout::channels_last;
  EXPECT_TRUE(prepare_all_kernels(*pool.node, cpu()).empty());
}

TEST(Pool, HugeWindowsFarApartEnd) {
  const Tensor x = Tensor::from<float>({1, 1, 3}, {1, 2, 3});
  const Attributes attributes{{"kernel_shape", Ints{kMost}},
                              {"strides", Ints{kMost}},
                              {"pads", Ints{kMost - 1, kMost - 1}}};
  EXPECT_THAT(floats(call_op("MaxPool", {x}, attributes)[0]), ElementsAre(1, 3));
}

TEST(Pool, ManyPlanesWithoutElementsEnd) {
  const Shape planes{1LL << 60, 1, 0};
  const Attributes attributes{{"kernel_shape", Ints{1}}, {"auto_pad", "SAME_UPPER"}};
  const Tensor x = Tensor::zeros(DType::f32, planes);
  EXPECT_EQ(call_op("AveragePool", {x}, attributes)[0].shape(), planes);
}

TEST(MaxPool, IndicesOfWindowsWithoutElementsInColumnOrder) {
  const Attributes attributes{
      {"kernel_shape", Ints{3}}, {"pads", Ints{2, 2}}, {"storage_order", 1}};
  const auto y = call_op("MaxPool", {Tensor::zeros(DType::f32, {1, 1, 0})}, attributes, 2);
  EXPECT_THAT(indices(y[1]), ElementsAre(-1, -1));
}

}  // namespace
}  // namespace graft
