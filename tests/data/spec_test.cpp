#include "data/spec.h"

#include <gtest/gtest.h>

#include <array>

#include "data/tensor_dataset.h"
#include "tests/data/test_files.h"

namespace graft {
namespace {

using testing::bytes;
using testing::expect_error;
using testing::idx;
using testing::TempFolder;

TEST(OpenDataset, OpensEachForm) {
  const TempFolder folder;
  const std::string place = folder.path().string();
  for (const std::string prefix : {"train", "t10k"}) {
    folder.write(prefix + "-images-idx3-ubyte", idx(8, {1, 1, 1}, bytes({1})));
    folder.write(prefix + "-labels-idx1-ubyte", idx(8, {1}, bytes({1})));
  }
  folder.write("test_batch.bin", std::string(3073, '\0'));
  folder.write("a:b.csv", "1,0\n2,1\n");
  EXPECT_EQ(open_dataset("mnist:" + place, Split::train)->info().class_names[1], "1");
  EXPECT_EQ(open_dataset("fashion-mnist:" + place, Split::test)->info().class_names[1], "Trouser");
  EXPECT_EQ(open_dataset("cifar10:" + place, Split::test)->info().class_names[1], "automobile");
  EXPECT_EQ(open_dataset("csv:" + place + "/a:b.csv", Split::test)->size(), 2);
}

TEST(OpenDataset, OpensFashionMnistWithoutAPlace) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  }
  EXPECT_EQ(open_dataset("fashion-mnist", Split::test)->size(), 10000);
}

TEST(OpenDataset, TakesFormsOfTheCaller) {
  const std::array more{
      DataSource{"zeros", "COUNT", false, [](const std::string& place, Split split) {
                   const Shape shape{std::stoll(place), split == Split::train ? 2 : 1};
                   const Tensor zeros = Tensor::zeros(DType::f32, shape);
                   return tensor_dataset({{"x", zeros}}, {"y", zeros});
                 }}};
  const auto data = open_dataset("zeros:3", Split::train, more);
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->info().inputs[0].shape, (Shape{2}));
  expect_error(ErrorKind::argument, "csv:FILE, zeros:COUNT",
               [&] { open_dataset("ones:3", Split::train, more); });
}

TEST(OpenDataset, RefusesOtherSpecs) {
  expect_error(ErrorKind::argument,
               "data spec 'imagenet' is unknown, wanted one of fashion-mnist[:DIR], mnist:DIR, "
               "cifar10:DIR, csv:FILE",
               [] { open_dataset("imagenet", Split::train); });
  expect_error(ErrorKind::argument, "data spec '' is unknown",
               [] { open_dataset("", Split::train); });
  expect_error(ErrorKind::argument, "data spec 'mnist' lacks its DIR, wanted mnist:DIR",
               [] { open_dataset("mnist", Split::train); });
  expect_error(ErrorKind::argument, "data spec 'csv:' lacks its FILE",
               [] { open_dataset("csv:", Split::train); });
}

}  // namespace
}  // namespace graft
