#include "data/resize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/tensor_dataset.h"
#include "tests/data/test_files.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;
using ::testing::FloatNear;
using ::testing::Pointwise;

/// One image [1,2,3], a number beside it, and two targets.
std::shared_ptr<Dataset> one_image() {
  return tensor_dataset({{"image", Tensor::from<float>({1, 1, 2, 3}, {1, 2, 3, 5, 8, 13})},
                         {"age", Tensor::from<float>({1, 1}, {7})}},
                        {"label", Tensor::from<std::int64_t>({1}, {0})}, 0,
                        {{"box", Tensor::from<float>({1, 2}, {3, 4})}});
}

Batch read(const Dataset& dataset) {
  Batch batch = make_batch(dataset.info(), 1);
  dataset.read(0, SampleRow(batch, 0));
  return batch;
}

/// As torch.nn.functional.interpolate(x, size, mode="bilinear", align_corners=False).
TEST(Resized, IsPyTorchsBilinear) {
  const auto larger = resized(one_image(), 4, 4);
  EXPECT_EQ(larger->info().inputs[0].shape, (Shape{1, 4, 4}));
  const Batch batch = read(*larger);
  const auto pixels = batch.inputs[0].values<const float>();
  EXPECT_THAT(
      std::vector<float>(pixels.begin(), pixels.end()),
      Pointwise(FloatNear(1e-5F),
                std::vector<float>{1.0F, 1.625F, 2.375F, 3.0F, 2.0F, 2.9375F, 4.25F, 5.5F, 4.0F,
                                   5.5625F, 8.0F, 10.5F, 5.0F, 6.875F, 9.875F, 13.0F}));
  EXPECT_EQ(batch.inputs[1].values<const float>()[0], 7.0F);
  EXPECT_EQ(batch.target.values<const std::int64_t>()[0], 0);
  EXPECT_EQ(batch.further_targets[0].values<const float>()[1], 4.0F);
  const Batch small = read(*resized(one_image(), 1, 2));
  const auto few = small.inputs[0].values<const float>();
  EXPECT_THAT(std::vector<float>(few.begin(), few.end()), ElementsAre(3.5F, 7.25F));
}

TEST(Resized, RefusesWhatIsNoImage) {
  expect_error(ErrorKind::argument, "to 0 x 4 pixels", [] { resized(one_image(), 0, 4); });
  expect_error(ErrorKind::unsupported, "to 1 x 1099511627776 pixels needs a table",
               [] { resized(one_image(), 1, std::int64_t{1} << 40); });
  expect_error(ErrorKind::argument, "no data set", [] { resized(nullptr, 4, 4); });
  const auto row = tensor_dataset({{"x", Tensor::from<float>({1, 2}, {1, 2})}},
                                  {"label", Tensor::from<std::int64_t>({1}, {0})});
  expect_error(ErrorKind::shape, "input 'x' has shape [2], wanted an image [C,H,W]",
               [&] { resized(row, 4, 4); });
  for (const Shape& shape : {Shape{1, 1, 0, 3}, Shape{1, 1, 3, 0}}) {
    const auto no_pixels = tensor_dataset({{"x", Tensor::zeros(DType::f32, shape)}},
                                          {"label", Tensor::from<std::int64_t>({1}, {0})});
    expect_error(ErrorKind::shape, "with pixels", [&] { resized(no_pixels, 4, 4); });
  }
}

}  // namespace
}  // namespace graft
