#include "data/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/data/test_files.h"

namespace graft {
namespace {

using testing::bytes;
using testing::expect_error;
using testing::gzip;
using testing::TempFolder;

/// Each channel of one value.
std::string record(int label, int red, int green, int blue) {
  return bytes({label}) + std::string(1024, static_cast<char>(red)) +
         std::string(1024, static_cast<char>(green)) + std::string(1024, static_cast<char>(blue));
}

TEST(Cifar10, ReadsAllTrainingFilesInOrder) {
  const TempFolder folder;
  folder.write("data_batch_2.bin", record(7, 51, 0, 255));
  folder.write("data_batch_1.bin.gz", gzip(record(3, 0, 102, 0) + record(0, 255, 255, 255)));
  folder.write("data_batch_2.bin.gz", "the plain file goes first");
  folder.write("batches.meta.txt", "airplane");
  const auto data = cifar10(folder.path(), Split::train);
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(data->info().inputs[0].shape, (Shape{3, 32, 32}));
  EXPECT_EQ(data->info().class_names[3], "cat");
  const Batch batch = make_batch(data->info(), 3);
  for (std::int64_t i = 0; i < 3; ++i) data->read(i, SampleRow(batch, i));
  EXPECT_THAT(batch.target.values<std::int64_t>(), ::testing::ElementsAre(3, 0, 7));
  const auto last = SampleRow(batch, 2).input<float>();
  EXPECT_EQ(last[0], 0.2F);
  EXPECT_EQ(last[1023], 0.2F);
  EXPECT_EQ(last[1024], 0.0F);
  EXPECT_EQ(last[3071], 1.0F);
  EXPECT_EQ(SampleRow(batch, 0).input<float>()[1024], 0.4F);
}

TEST(Cifar10, RefusesFilesThatDoNotFit) {
  const TempFolder folder;
  expect_error(ErrorKind::io, "holds no data_batch_*.bin[.gz]",
               [&] { cifar10(folder.path(), Split::train); });
  expect_error(ErrorKind::io, "No such file", [&] { cifar10("no/such/folder", Split::train); });
  const auto open = [&] { cifar10(folder.path(), Split::test); };
  expect_error(ErrorKind::io, "test_batch.bin: no such file", open);
  folder.write("test_batch.bin", record(1, 0, 0, 0).substr(1));
  expect_error(ErrorKind::io, "holds 3072 bytes, wanted records of 3073", open);
  folder.write("test_batch.bin", "");
  expect_error(ErrorKind::io, "holds 0 bytes", open);
  folder.write("test_batch.bin", record(1, 0, 0, 0) + record(10, 0, 0, 0));
  expect_error(ErrorKind::io, "label 10 of sample 1 is out of range", open);
}

TEST(Cifar10, SharedDataIsTheKnownSet) {
  const auto folder = testing::shared_folder() / "data/cifar10";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  EXPECT_EQ(cifar10(folder, Split::test)->size(), 2000);
  const auto data = cifar10(folder, Split::train);
  ASSERT_EQ(data->size(), 10000);
  const Batch one = make_batch(data->info(), 1);
  const SampleRow row(one, 0);
  std::array<double, 3> sum{};
  std::array<double, 3> squares{};
  for (std::int64_t i = 0; i < data->size(); ++i) {
    data->read(i, row);
    const auto pixels = row.input<float>();
    for (std::size_t p = 0; p < pixels.size(); ++p) {
      sum[p / 1024] += pixels[p];
      squares[p / 1024] += pixels[p] * pixels[p];
    }
  }
  // The means and deviations of the five batches together; one of them is within 0.003.
  constexpr std::array<double, 3> kMean{0.4914, 0.4822, 0.4465};
  constexpr std::array<double, 3> kDeviation{0.2470, 0.2435, 0.2616};
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = sum[c] / (10000.0 * 1024.0);
    EXPECT_NEAR(mean, kMean[c], 3e-3);
    EXPECT_NEAR(std::sqrt(squares[c] / (10000.0 * 1024.0) - mean * mean), kDeviation[c], 3e-3);
  }
}

}  // namespace
}  // namespace graft
