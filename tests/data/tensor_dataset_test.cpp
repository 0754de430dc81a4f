#include "data/tensor_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/data/test_files.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

Tensor labels(std::vector<std::int64_t> values) {
  return Tensor::from(Shape{static_cast<std::int64_t>(values.size())}, values);
}

TEST(TensorDataset, ReadsSeveralInputsAndConvertsTypes) {
  const auto data = tensor_dataset(
      {{"x", Tensor::from(Shape{2, 2}, std::vector<double>{1.5, 2, 3, 4})},
       {"ids", Tensor::from(Shape{2, 3}, std::vector<std::int32_t>{1, 2, 3, 4, 5, 6})}},
      {"y", Tensor::from(Shape{2, 1}, std::vector<float>{7, 8})});
  EXPECT_EQ(data->info().inputs[0].dtype, DType::f32);
  EXPECT_EQ(data->info().inputs[1].dtype, DType::i64);
  EXPECT_EQ(data->info().classes, 0);
  const Batch batch = make_batch(data->info(), 2);
  data->read(1, SampleRow(batch, 0));
  data->read(0, SampleRow(batch, 1));
  EXPECT_THAT(batch.inputs[0].values<float>(), ElementsAre(3, 4, 1.5F, 2));
  EXPECT_THAT(batch.inputs[1].values<std::int64_t>(), ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(batch.target.values<float>(), ElementsAre(8, 7));
}

TEST(TensorDataset, RefusesIntegersThatTheWantedTypeWouldWrap) {
  const Tensor x = Tensor::zeros(DType::f32, Shape{3, 1});
  const auto with = [&](const Tensor& ids, DType wanted) {
    return tensor_dataset({{"x", x}, {"ids", ids, wanted}}, {"y", labels({0, 1, 2})});
  };
  expect_error(ErrorKind::type, "'ids' is i64[3] and holds 300, which does not fit into the u8",
               [&] {
                 with(labels({255, 300, 0}), DType::u8);
               });
  expect_error(ErrorKind::type, "holds -1, which does not fit into the u64", [&] {
    with(labels({0, -1, 5}), DType::u64);
  });
  constexpr std::uint64_t kLarge = std::numeric_limits<std::uint64_t>::max();
  expect_error(ErrorKind::type, "holds 18446744073709551615, which does not fit into the i64", [&] {
    with(Tensor::from<std::uint64_t>({3}, {0, kLarge, 1}), DType::undefined);
  });
  EXPECT_EQ(with(labels({255, 7, 0}), DType::u8)->info().inputs[1].dtype, DType::u8);
}

TEST(TensorDataset, TakesALabelThatIsIgnoredForNoClass) {
  const Tensor x = Tensor::zeros(DType::f32, Shape{3, 1});
  const auto classes = [&](std::vector<std::int64_t> of, std::int64_t wanted,
                           std::int64_t ignored) {
    return tensor_dataset({{"x", x}}, {"y", labels(std::move(of))}, wanted, {}, ignored)
        ->info()
        .classes;
  };
  EXPECT_EQ(classes({0, 1, 2}, 0, -100), 3);
  EXPECT_EQ(classes({0, -100, 2}, 0, -100), 0);
  EXPECT_EQ(classes({0, 255, 2}, 4, 255), 0);
  expect_error(ErrorKind::argument, "label -1 of sample 2 in 'y' is out of range, wanted 0 to 0",
               [&] {
                 classes({0, -100, -1}, 0, -100);
               });
}

TEST(TensorDataset, FindsOrChecksTheNumberOfClasses) {
  const Tensor x = Tensor::zeros(DType::f32, Shape{3, 1});
  EXPECT_EQ(tensor_dataset({{"x", x}}, {"y", labels({0, 4, 1})})->info().classes, 5);
  EXPECT_EQ(tensor_dataset({{"x", x}}, {"y", labels({0, 4, 1})}, 9)->info().classes, 9);
  expect_error(ErrorKind::argument, "label 4 of sample 1 in 'y' is out of range, wanted 0 to 3",
               [&] {
                 tensor_dataset({{"x", x}}, {"y", labels({0, 4, 1})}, 4);
               });
  expect_error(ErrorKind::argument, "label -1 of sample 2", [&] {
    tensor_dataset({{"x", x}}, {"y", labels({0, 4, -1})});
  });
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  expect_error(ErrorKind::argument, "label 9223372036854775807 of sample 0", [&] {
    tensor_dataset({{"x", x}}, {"y", labels({kMost, 0, 0})});
  });
}

TEST(TensorDataset, RefusesTensorsThatDoNotFit) {
  const Tensor x = Tensor::zeros(DType::f32, Shape{3, 1});
  expect_error(ErrorKind::shape, "'x' is f32[3,1], wanted 2 samples", [&] {
    tensor_dataset({{"x", x}}, {"y", labels({0, 1})});
  });
  expect_error(ErrorKind::shape, "'x' is f32[], wanted 2 samples", [] {
    tensor_dataset({{"x", Tensor::scalar(1.0F)}}, {"y", labels({0, 1})});
  });
  expect_error(ErrorKind::shape, "'y' is i64[], wanted samples along the first axis", [&] {
    tensor_dataset({{"x", x}}, {"y", Tensor::scalar<std::int64_t>(1)});
  });
  expect_error(ErrorKind::type, "'x' is string[1], wanted float, integer or bool", [] {
    tensor_dataset({{"x", Tensor::from_strings(Shape{1}, {"a"})}}, {"y", labels({0})});
  });
  expect_error(ErrorKind::type, "'y' is no tensor", [&] { tensor_dataset({{"x", x}}, {"y", {}}); });
}

}  // namespace
}  // namespace graft
