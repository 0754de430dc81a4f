#include "data/mnist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/data/test_files.h"

namespace graft {
namespace {

using testing::bytes;
using ::testing::ElementsAre;
using testing::expect_error;
using testing::gzip;
using testing::idx;
using testing::TempFolder;

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";

struct Facts {
  std::array<int, 10> histogram{};
  double mean = 0.0;
  double deviation = 0.0;
};

Facts facts_of(const Dataset& data) {
  Facts facts;
  double sum = 0.0;
  double squares = 0.0;
  const Batch one = make_batch(data.info(), 1);
  const SampleRow row(one, 0);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.read(i, row);
    ++facts.histogram.at(static_cast<std::size_t>(row.target<std::int64_t>()[0]));
    for (const float pixel : row.input<float>()) {
      sum += pixel;
      squares += pixel * pixel;
    }
  }
  const auto count = static_cast<double>(data.size() * one.inputs[0].size());
  facts.mean = sum / count;
  facts.deviation = std::sqrt(squares / count - facts.mean * facts.mean);
  return facts;
}

TEST(Mnist, ScalesPixelsAndGivesLabels) {
  const TempFolder folder;
  folder.write(kImages, idx(0x08, {2, 1, 2}, bytes({0, 255, 51, 102})));
  folder.write(std::string(kLabels) + ".gz", gzip(idx(0x08, {2}, bytes({9, 0}))));
  const auto data = mnist(folder.path(), Split::train);
  EXPECT_EQ(data->size(), 2);
  EXPECT_EQ(data->info().classes, 10);
  EXPECT_EQ(data->info().class_names[9], "9");
  EXPECT_EQ(data->info().inputs[0].shape, (Shape{1, 1, 2}));
  const Batch batch = make_batch(data->info(), 2);
  data->read(1, SampleRow(batch, 0));
  data->read(0, SampleRow(batch, 1));
  EXPECT_THAT(batch.inputs[0].values<float>(), ElementsAre(0.2F, 0.4F, 0.0F, 1.0F));
  EXPECT_THAT(batch.target.values<std::int64_t>(), ElementsAre(0, 9));
}

TEST(Mnist, RefusesFilesThatDoNotFit) {
  const TempFolder folder;
  const auto open = [&] { mnist(folder.path(), Split::train); };
  expect_error(ErrorKind::io, "train-images-idx3-ubyte: no such file", open);
  folder.write(kImages, idx(0x08, {2, 1, 1}, bytes({1, 2})));
  expect_error(ErrorKind::io, "train-labels-idx1-ubyte: no such file", open);
  folder.write(kLabels, idx(0x08, {3}, bytes({1, 2, 3})));
  expect_error(ErrorKind::io, "2 images, but 3 labels", open);
  folder.write(kLabels, idx(0x08, {2}, bytes({1, 10})));
  expect_error(ErrorKind::io, "label 10 of sample 1 is out of range, wanted 0 to 9", open);
  folder.write(kLabels, idx(0x08, {1, 2}, bytes({1, 2})));
  expect_error(ErrorKind::io, "labels are u8[1,2], wanted u8[N]", open);
  folder.write(kImages, idx(0x09, {2, 1, 1}, bytes({1, 2})));
  expect_error(ErrorKind::io, "images are i8[2,1,1,1], wanted u8[N,C,H,W]", open);
  folder.write(kImages, idx(0x08, {2}, bytes({1, 2})));
  expect_error(ErrorKind::io, "holds u8[2], wanted u8[N,H,W]", open);
}

TEST(Mnist, SharedDataIsTheKnownSet) {
  const auto folder = testing::shared_folder() / "data/mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  const Facts facts = facts_of(*mnist(folder, Split::train));
  EXPECT_THAT(facts.histogram,
              ElementsAre(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949));
  EXPECT_NEAR(facts.mean, 0.1307, 5e-5);
  EXPECT_NEAR(facts.deviation, 0.3081, 5e-5);
  EXPECT_THAT(facts_of(*mnist(folder, Split::test)).histogram,
              ElementsAre(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009));
}

TEST(FashionMnist, DebianDataIsTheKnownSet) {
  if (!std::filesystem::exists(kFashionMnistFolder)) {
    GTEST_SKIP() << "no " << kFashionMnistFolder << ": install dataset-fashion-mnist";
  }
  const auto train = fashion_mnist(Split::train);
  EXPECT_EQ(train->size(), 60000);
  EXPECT_EQ(train->info().inputs[0].shape, (Shape{1, 28, 28}));
  EXPECT_EQ(train->info().class_names[9], "Ankle boot");
  const Facts facts = facts_of(*train);
  EXPECT_THAT(facts.histogram, ::testing::Each(6000));
  EXPECT_NEAR(facts.mean, 0.2860, 5e-5);
  EXPECT_NEAR(facts.deviation, 0.3530, 5e-5);
  EXPECT_THAT(facts_of(*fashion_mnist(Split::test)).histogram, ::testing::Each(1000));
}

}  // namespace
}  // namespace graft
