#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace graft {
namespace {

using testing::expect_error;

class Nothing final : public Dataset {
 public:
  explicit Nothing(DatasetInfo info) : Dataset(std::move(info)) {}
  void read(std::int64_t /*index*/, const SampleRow& /*row*/) const override {}
};

DatasetInfo labelled(std::int64_t classes) {
  return {.size = 1,
          .inputs = {{"x", DType::f32, Shape{2}}},
          .target = {"y", DType::i64, Shape{}},
          .classes = classes};
}

TEST(Dataset, RefusesInfoThatContradictsItself) {
  const auto refused = [](std::string_view part, const DatasetInfo& info) {
    expect_error(ErrorKind::argument, part, [&] { Nothing{info}; });
  };
  DatasetInfo info = labelled(2);
  info.size = -1;
  refused("size -1 is negative", info);
  info = labelled(2);
  info.inputs.clear();
  refused("needs an input", info);
  info = labelled(2);
  info.inputs[0].dtype = DType::string;
  refused("field 'x' is string[2], wanted elements that are numbers or bool", info);
  info = labelled(2);
  info.target.shape = Shape{1};
  refused("2 classes need an i64[] target, found i64[1]", info);
  info = labelled(2);
  info.class_names = {"cat"};
  refused("1 class names for 2 classes", info);
  refused("-1 classes", labelled(-1));
}

TEST(Dataset, CheckLabelsComparesWithTheModel) {
  const Nothing data(labelled(10));
  EXPECT_NO_THROW(check_labels(data, 10));
  EXPECT_NO_THROW(check_labels(data, 1000));
  expect_error(ErrorKind::argument, "labels go up to 9, but the model tells only 5 classes apart",
               [&] { check_labels(data, 5); });
  expect_error(ErrorKind::argument, "the target is i64[], wanted a class index",
               [] { check_labels(Nothing(labelled(0)), 5); });
}

TEST(SampleRow, IsOneRowOfEveryField) {
  DatasetInfo info = labelled(0);
  info.inputs.push_back({"ids", DType::i64, Shape{2, 1}});
  const Batch batch = make_batch(info, 3);
  EXPECT_EQ(batch.inputs[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(batch.inputs[1].shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(batch.target.shape(), (Shape{3}));
  const SampleRow row(batch, 1);
  EXPECT_EQ(row.input<float>().data(), batch.inputs[0].values<float>().data() + 2);
  EXPECT_EQ(row.input<std::int64_t>(1).size(), 2);
  EXPECT_EQ(row.target<std::int64_t>().data(), batch.target.values<std::int64_t>().data() + 1);
  expect_error(ErrorKind::type, "wanted elements of type f32", [&] { row.input<float>(1); });
}

TEST(SampleRow, CountsSamplesWhereTheBatchDoesNotSay) {
  Batch batch = make_batch(labelled(0), 3);
  batch.size = 0;
  const SampleRow row(batch, 2);
  EXPECT_EQ(row.input<float>().data(), batch.inputs[0].values<float>().data() + 4);
  EXPECT_EQ(row.target<std::int64_t>().size(), 1);
}

TEST(SampleRow, RefusesWhatIsNotThere) {
  const Batch batch = make_batch(labelled(0), 3);
  const SampleRow row(batch, 1);
  expect_error(ErrorKind::argument, "1 inputs, wanted number 1", [&] { row.input<float>(1); });
  expect_error(ErrorKind::argument, "0 further targets", [&] { row.further_target<float>(0); });
  for (const std::int64_t index : {-1, 3}) {
    expect_error(ErrorKind::argument, "in a batch of 3", [&] { SampleRow(batch, index); });
  }
  expect_error(ErrorKind::argument, "in a batch of 0",
               [] { SampleRow(make_batch(labelled(0), 0), 0); });
}

}  // namespace
}  // namespace graft
