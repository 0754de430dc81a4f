#include "train/data_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/error.h"
#include "io/npz.h"

namespace graft {
namespace {

class DataSpec : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::shared_ptr<Dataset> open(const std::vector<NamedTensor>& arrays, Split split) const {
    npz::save(path_, arrays);
    return open_data("npz:" + path_, split);
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("graft_spec_" + std::to_string(getpid()) + ".npz"))
          .string();
};

Tensor labels(const std::vector<std::int64_t>& values) {
  return Tensor::from(Shape{static_cast<std::int64_t>(values.size())}, values);
}

void expect_io_error(const std::function<void()>& action, const std::string& part) {
  try {
    action();
    ADD_FAILURE() << "no error, wanted one with '" << part << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
  }
}

TEST_F(DataSpec, NpzWithoutSplitsServesBoth) {
  const std::vector<NamedTensor> arrays{{"a", Tensor::zeros(DType::f32, {3, 2})},
                                        {"y", labels({0, 4, 1})},
                                        {"b", Tensor::zeros(DType::f32, {3})}};
  for (const Split split : {Split::train, Split::test}) {
    const auto data = open(arrays, split);
    EXPECT_EQ(data->size(), 3);
    EXPECT_EQ(data->info().classes, 5);
    ASSERT_EQ(data->info().inputs.size(), 2U);
    EXPECT_EQ(data->info().inputs[0].name, "a");
    EXPECT_EQ(data->info().inputs[1].name, "b");
  }
}

TEST_F(DataSpec, NpzSplitsByTheEndOfNames) {
  const std::vector<NamedTensor> arrays{{"x_train", Tensor::zeros(DType::f32, {3, 2})},
                                        {"y_train", labels({0, 1, 1})},
                                        {"x_test", Tensor::zeros(DType::f32, {2, 2})},
                                        {"y_test", labels({1, 0})}};
  EXPECT_EQ(open(arrays, Split::train)->size(), 3);
  const auto test = open(arrays, Split::test);
  EXPECT_EQ(test->size(), 2);
  EXPECT_EQ(test->info().inputs.front().name, "x");
  EXPECT_TRUE(has_test_split("npz:" + path_));
  open({{"x", Tensor::zeros(DType::f32, {1})}, {"y", labels({0})}}, Split::train);
  EXPECT_FALSE(has_test_split("npz:" + path_));
}

TEST_F(DataSpec, NpzArraysTakeTheTypesThatAreWanted) {
  const std::vector<NamedTensor> arrays{{"ids", Tensor::from<std::int64_t>({2}, {7, 8})},
                                        {"mask", Tensor::from<std::uint8_t>({2}, {1, 0})},
                                        {"x", Tensor::from<double>({2}, {0.1, 0.2})},
                                        {"image", Tensor::from<std::uint8_t>({2}, {255, 0})},
                                        {"more", Tensor::from<double>({2}, {0.5, 0.25})},
                                        {"y", Tensor::from<double>({2}, {0.1, 0.2})}};
  npz::save(path_, arrays);
  const WantedTypes wanted{.inputs = {DType::i32, DType::boolean, DType::f64, DType::f32},
                           .target = DType::f64};
  const auto data = open_data("npz:" + path_, Split::train, wanted);
  const std::vector<DType> found{DType::i32, DType::boolean, DType::f64, DType::f32, DType::f32};
  ASSERT_EQ(data->info().inputs.size(), found.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(data->info().inputs[i].dtype, found[i]);
  EXPECT_EQ(data->info().target.dtype, DType::f64);
  const Batch batch = make_batch(data->info(), 1);
  data->read(0, SampleRow(batch, 0));
  EXPECT_EQ(batch.inputs[0].values<std::int32_t>()[0], 7);
  EXPECT_TRUE(batch.inputs[1].values<bool>()[0]);
  EXPECT_EQ(batch.inputs[2].values<double>()[0], 0.1);
  EXPECT_EQ(batch.inputs[3].values<float>()[0], 255.0F);
  EXPECT_EQ(batch.inputs[4].values<float>()[0], 0.5F);
  EXPECT_EQ(batch.target.values<double>()[0], 0.1);
}

TEST_F(DataSpec, NpzHoldsSeveralTargetsWhereNoneIsPlain) {
  std::vector<NamedTensor> arrays{{"x", Tensor::zeros(DType::f32, {2})},
                                  {"target_class", labels({0, 1})},
                                  {"target_box", Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6})}};
  npz::save(path_, arrays);
  const auto data = open_data("npz:" + path_, Split::train);
  EXPECT_EQ(data->info().target.name, "target_class");
  ASSERT_EQ(data->info().further_targets.size(), 1U);
  const Batch batch = make_batch(data->info(), 1);
  data->read(1, SampleRow(batch, 0));
  EXPECT_EQ(targets_of(batch).size(), 2U);
  EXPECT_EQ(batch.further_targets[0].values<float>()[2], 6.0F);
  arrays.push_back({"y", labels({1, 0})});
  npz::save(path_, arrays);
  EXPECT_EQ(open_data("npz:" + path_, Split::train)->info().inputs.size(), 3U);
}

TEST_F(DataSpec, FloatsWhereIntegersAreWantedAreRefused) {
  const std::vector<NamedTensor> arrays{{"x", Tensor::zeros(DType::f64, {2})},
                                        {"y", labels({0, 1})}};
  npz::save(path_, arrays);
  try {
    open_data("npz:" + path_, Split::train, {.inputs = {DType::i64}});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::type);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("'x' is f64[2]"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("wanted i64 elements"));
  }
}

TEST_F(DataSpec, NpzWithoutTargetIsRefused) {
  expect_io_error(
      [&] {
        open({{"x", Tensor::zeros(DType::f32, {3})}}, Split::train);
      },
      "the train split has 1 inputs and 0 targets");
}

TEST_F(DataSpec, NpzWithoutTheSplitIsRefused) {
  expect_io_error(
      [&] {
        open({{"x_train", Tensor::zeros(DType::f32, {1})}, {"y_train", labels({0})}}, Split::test);
      },
      "the test split has 0 inputs and 0 targets");
}

TEST(DataSpecNames, UnknownFormsAreRefusedWithTheList) {
  try {
    open_data("parquet:x", Split::train);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::argument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("cifar10:DIR, csv:FILE, npz:FILE"));
  }
}

TEST(DataSpecNames, KnownDataHaveATestSplitAndStatistics) {
  EXPECT_TRUE(has_test_split("fashion-mnist"));
  EXPECT_TRUE(has_test_split("mnist:some/dir"));
  EXPECT_FALSE(has_test_split("csv:mnist"));
  EXPECT_EQ(known_normalization("cifar10:x")->mean,
            (std::vector<float>{0.4914F, 0.4822F, 0.4465F}));
  EXPECT_FALSE(known_normalization("npz:x").has_value());
}

}  // namespace
}  // namespace graft
