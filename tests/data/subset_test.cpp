#include "data/subset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/tensor_dataset.h"
#include "tests/data/test_files.h"

namespace graft {
namespace {

using testing::expect_error;

std::shared_ptr<Dataset> four_samples() {
  return tensor_dataset({{"x", Tensor::from<float>({4, 1}, {10, 20, 30, 40})}},
                        {"label", Tensor::from<std::int64_t>({4}, {0, 1, 2, 3})});
}

TEST(Subset, HoldsTheFirstSamples) {
  const auto first = first_samples(four_samples(), 3);
  EXPECT_EQ(first->size(), 3);
  EXPECT_EQ(first->info().classes, 4) << "labels may still come from all classes";
  const Batch batch = make_batch(first->info(), 1);
  first->read(2, SampleRow(batch, 0));
  EXPECT_EQ(batch.inputs[0].values<float>()[0], 30.0F);
  EXPECT_EQ(batch.target.values<std::int64_t>()[0], 2);
}

TEST(Subset, HoldsAllWhenThereAreFewer) {
  EXPECT_EQ(first_samples(four_samples(), 9)->size(), 4);
}

TEST(Subset, RefusesNone) {
  expect_error(ErrorKind::argument, "first 0 samples", [] { first_samples(four_samples(), 0); });
  expect_error(ErrorKind::argument, "no data set", [] { first_samples(nullptr, 1); });
}

}  // namespace
}  // namespace graft
