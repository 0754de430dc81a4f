#include "data/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;
using testing::TempFolder;

std::shared_ptr<Dataset> open(std::string_view content, CsvTarget target = CsvTarget::automatic) {
  const TempFolder folder;
  return csv(folder.write("table.csv", content), target);
}

/// All samples as one batch.
Batch all_of(const Dataset& data) {
  const Batch batch = make_batch(data.info(), data.size());
  for (std::int64_t i = 0; i < data.size(); ++i) data.read(i, SampleRow(batch, i));
  return batch;
}

TEST(Csv, ReadsFeaturesAndClassIndices) {
  const auto data = open("width,height,kind\n1.5,-2e1,2\n+3, 4 ,0\n");
  EXPECT_EQ(data->info().classes, 3);
  EXPECT_EQ(data->info().inputs[0].shape, (Shape{2}));
  const Batch batch = all_of(*data);
  EXPECT_THAT(batch.inputs[0].values<float>(), ElementsAre(1.5F, -20.0F, 3.0F, 4.0F));
  EXPECT_THAT(batch.target.values<std::int64_t>(), ElementsAre(2, 0));
}

TEST(Csv, ReadsAFloatTargetAsSoonAsOneIsNoIndex) {
  const auto data = open("1,2\n3,4.5\n5,-6\n");
  EXPECT_EQ(data->info().classes, 0);
  EXPECT_EQ(data->info().target.shape, (Shape{1}));
  EXPECT_THAT(all_of(*data).target.values<float>(), ElementsAre(2.0F, 4.5F, -6.0F));
}

TEST(Csv, TheCallerMayDecideTheTarget) {
  EXPECT_EQ(open("1,2\n", CsvTarget::number)->info().target.dtype, DType::f32);
  expect_error(ErrorKind::io, "line 2, column 2: label '3.0' is not a class index",
               [] { open("1,2\n1,3.0\n", CsvTarget::class_index); });
}

TEST(Csv, AcceptsWhatSpreadsheetsWrite) {
  const auto data = open("\xEF\xBB\xBF\"a, b\",\"c\"\r\n\r\n\"1\",2\r\n3,\" 1 \"");
  EXPECT_THAT(all_of(*data).inputs[0].values<float>(), ElementsAre(1.0F, 3.0F));
  EXPECT_EQ(data->info().classes, 3);
  EXPECT_EQ(csv(TempFolder().write("t.csv.gz", testing::gzip("1,2\n")))->size(), 1);
}

TEST(Csv, WhatIsTooSmallIsNoughtAndDoubledQuotesStandForOne) {
  const auto data = open("\"a \"\"x\"\", b\",label\n1e-400,1\n2,0\n");
  EXPECT_THAT(all_of(*data).inputs[0].values<float>(), ElementsAre(0.0F, 2.0F));
}

TEST(Csv, NamesLineAndColumnOfAnError) {
  const auto refused = [](std::string_view content, std::string_view part) {
    expect_error(ErrorKind::io, part, [&] { open(content); });
  };
  refused("a,b\n1,2\n1,x\n", "table.csv: line 3, column 2: 'x' is not a number");
  refused("1,2\n\n1.5.2,3\n", "line 3, column 1: '1.5.2' is not a number");
  refused("1,,2\n", "line 1, column 2: the field is empty");
  refused("1,2\n1,2,3\n", "line 2, column 3: 3 columns, wanted 2");
  refused("1,2,3\n1,2\n", "line 2, column 3: 2 columns, wanted 3");
  refused("1\n", "line 1, column 1: 1 column, wanted features and a target");
  refused("1,2\n1e39,2\n", "line 2, column 1: '1e39' is not a finite f32");
  refused("nan,2\n", "line 1, column 1: 'nan' is not a finite f32");
  refused("1,2\n1,-inf\n", "line 2, column 2: '-inf' is not a finite f32");
  refused("1,2\n\"1,2\n", "line 2, column 1: the quote is not closed");
  refused("1,2\n+-5,2\n", "line 2, column 1: '+-5' is not a number");
  refused("a,b\n", "holds no sample");
  refused("", "holds no sample");
  refused(std::string_view("1,2\n1,\0\n", 8), "line 2, column 2");
}

}  // namespace
}  // namespace graft
