#include "data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "data/tensor_dataset.h"
#include "tests/data/test_files.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;
using Order = std::vector<std::int64_t>;

/// Sample i is the image [[[i, i + 0.5]]] with target [i].
std::shared_ptr<Dataset> numbered(std::int64_t size) {
  std::vector<float> pixels;
  std::vector<std::int64_t> targets;
  for (std::int64_t i = 0; i < size; ++i) {
    pixels.insert(pixels.end(), {static_cast<float>(i), static_cast<float>(i) + 0.5F});
    targets.push_back(i);
  }
  return tensor_dataset({{"x", Tensor::from(Shape{size, 1, 1, 2}, pixels)}},
                        {"y", Tensor::from(Shape{size}, targets)});
}

/// Throws when asked for a sample at or beyond `bad`; counts what it reads.
class Failing final : public Dataset {
 public:
  Failing(std::int64_t size, std::int64_t bad, std::int64_t label = 0)
      : Dataset({.size = size,
                 .inputs = {{"x", DType::f32, Shape{1}}},
                 .target = {"y", DType::i64, Shape{}},
                 .classes = 2}),
        bad_(bad),
        label_(label) {}
  void read(std::int64_t index, const SampleRow& row) const override {
    if (index >= bad_) fail(ErrorKind::io, "sample ", index, " is broken");
    row.input<float>()[0] = 0.0F;
    row.target<std::int64_t>()[0] = label_;
    ++reads;
  }
  mutable std::atomic<int> reads = 0;

 private:
  std::int64_t bad_;
  std::int64_t label_;
};

Order epoch_of(DataLoader& loader) {
  Order order;
  for (const Batch& batch : loader) {
    const auto targets = batch.target.values<const std::int64_t>();
    order.insert(order.end(), targets.begin(), targets.end());
  }
  return order;
}

TEST(DataLoader, KeepsTheOrderAndTheSmallerLastBatch) {
  std::vector<Order> targets;
  for (const Batch& batch : DataLoader(numbered(5), {.batch = 2})) {
    EXPECT_EQ(batch.inputs[0].shape(), (Shape{batch.size, 1, 1, 2}));
    const auto values = batch.target.values<const std::int64_t>();
    targets.emplace_back(values.begin(), values.end());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(batch.inputs[0].values<float>()[2 * i + 1], static_cast<float>(values[i]) + 0.5F);
    }
  }
  EXPECT_EQ(targets, (std::vector<Order>{{0, 1}, {2, 3}, {4}}));
}

TEST(DataLoader, DropsTheLastBatchOnRequest) {
  DataLoader loader(numbered(5), {.batch = 2, .drop_last = true});
  EXPECT_EQ(loader.batches(), 2);
  EXPECT_THAT(epoch_of(loader), ElementsAre(0, 1, 2, 3));
}

TEST(DataLoader, GivesASmallSetAsOneBatch) {
  DataLoader loader(numbered(3), {.batch = 1'000'000'000});
  EXPECT_EQ(loader.batches(), 1);
  EXPECT_THAT(epoch_of(loader), ElementsAre(0, 1, 2));
}

TEST(DataLoader, ShuffleIsAPermutationThatSeedAndEpochDecide) {
  const LoaderOptions options{.batch = 7, .shuffle = true, .seed = 7};
  DataLoader loader(numbered(100), options);
  const Order first = epoch_of(loader);
  const Order second = epoch_of(loader);
  Order sorted(100);
  std::iota(sorted.begin(), sorted.end(), 0);
  EXPECT_NE(first, sorted);
  EXPECT_NE(first, second);
  EXPECT_TRUE(std::ranges::is_permutation(first, sorted));
  EXPECT_TRUE(std::ranges::is_permutation(second, sorted));

  DataLoader again(numbered(100), {.batch = 13, .shuffle = true, .seed = 7, .prefetch = 0});
  EXPECT_EQ(epoch_of(again), first);
  DataLoader other(numbered(100), {.batch = 7, .shuffle = true, .seed = 8});
  EXPECT_NE(epoch_of(other), first);
}

TEST(DataLoader, SetEpochResumes) {
  const LoaderOptions options{.batch = 4, .shuffle = true, .seed = 1};
  DataLoader loader(numbered(20), options);
  epoch_of(loader);
  epoch_of(loader);
  const Order third = epoch_of(loader);
  EXPECT_EQ(loader.epoch(), 3);
  DataLoader resumed(numbered(20), options);
  resumed.set_epoch(2);
  EXPECT_EQ(epoch_of(resumed), third);
  expect_error(ErrorKind::argument, "epoch -1 is negative", [&] { resumed.set_epoch(-1); });
  expect_error(ErrorKind::argument, "wanted 0 to 4611686018427387903",
               [&] { resumed.set_epoch(INT64_MAX); });
}

TEST(DataLoader, StaysAtTheEnd) {
  DataLoader loader(numbered(3), {.batch = 2});
  auto at = loader.begin();
  for (int step = 0; step < 4; ++step) ++at;
  EXPECT_TRUE(at == loader.end());
  EXPECT_EQ(epoch_of(loader).size(), 3);
}

TEST(DataLoader, UsesPrefetchPlusOneBuffersInTurn) {
  DataLoader loader(numbered(20), {.batch = 2, .prefetch = 2});
  std::set<const void*> memory;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Batch& batch : loader) memory.insert(batch.inputs[0].data());
  }
  EXPECT_EQ(memory.size(), 3);
}

TEST(DataLoader, LeavesABatchAloneWhileItIsInUse) {
  DataLoader loader(numbered(40), {.batch = 2, .prefetch = 1});
  std::int64_t next = 0;
  for (const Batch& batch : loader) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the thread runs ahead
    EXPECT_THAT(batch.target.values<std::int64_t>(), ElementsAre(next, next + 1));
    next += 2;
  }
  EXPECT_EQ(next, 40);
}

TEST(DataLoader, AnEarlyBreakStopsTheThread) {
  const auto data = std::make_shared<Failing>(100000, 100000);
  {
    DataLoader loader(data, {.batch = 10, .prefetch = 3});
    for (int epoch = 0; epoch < 3; ++epoch) {
      int seen = 0;
      for (const Batch& batch : loader) {
        EXPECT_EQ(batch.size, 10);
        if (++seen == 2) break;
      }
    }
    // Two batches used and at most a ring of four more made, in each of three epochs.
    EXPECT_LE(data->reads, 3 * (2 + 4) * 10);
    loader.begin();
  }
  EXPECT_EQ(data.use_count(), 1);
}

TEST(DataLoader, MovesWhileAnEpochIsGoingOn) {
  DataLoader loader(numbered(6), {.batch = 2});
  auto it = loader.begin();
  DataLoader moved = std::move(loader);
  ++it;
  EXPECT_THAT(it->target.values<std::int64_t>(), ElementsAre(2, 3));
  EXPECT_THAT(epoch_of(moved), ElementsAre(0, 1, 2, 3, 4, 5));
}

/// The buffers hold the other epoch's batches by then.
TEST(DataLoader, AnEpochWithinAnEpochEndsTheFirst) {
  DataLoader loader(numbered(8), {.batch = 2});
  auto it = loader.begin();
  EXPECT_EQ(epoch_of(loader).size(), 8U);
  expect_error(ErrorKind::argument, "use a second DataLoader within an epoch", [&] { ++it; });
}

/// Of a data set that makes its samples; only shuffling needs a list of them.
TEST(DataLoader, TakesDataWithoutAnEnd) {
  constexpr std::int64_t kEndless = std::int64_t{1} << 62;
  const auto data = std::make_shared<Failing>(kEndless, kEndless);
  DataLoader loader(data, {.batch = 2});
  auto it = loader.begin();
  ++it;
  EXPECT_EQ(it->size, 2);
  expect_error(ErrorKind::memory, "no memory for the order of 4611686018427387904 samples",
               [&] { DataLoader(data, {.batch = 2, .shuffle = true}); });
}

TEST(DataLoader, RethrowsAfterTheBatchesBefore) {
  DataLoader loader(std::make_shared<Failing>(20, 9), {.batch = 4});
  for (int epoch = 0; epoch < 2; ++epoch) {
    int batches = 0;
    expect_error(ErrorKind::io, "sample 9 is broken", [&] {
      for (const Batch& batch : loader) batches += batch.size == 4 ? 1 : 0;
    });
    EXPECT_EQ(batches, 2);
  }
}

TEST(DataLoader, ChecksLabelsAsTheyAreRead) {
  DataLoader loader(std::make_shared<Failing>(3, 3, 2));
  expect_error(ErrorKind::argument, "label 2 of sample 0 is out of range, wanted 0 to 1",
               [&] { epoch_of(loader); });
}

/// The first pixel of each sample, by sample.
std::vector<float> transformed_epoch(DataLoader& loader) {
  std::vector<float> result(static_cast<std::size_t>(loader.dataset().size()));
  for (const Batch& batch : loader) {
    const auto targets = batch.target.values<const std::int64_t>();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      result[static_cast<std::size_t>(targets[i])] = batch.inputs[0].values<float>()[2 * i];
    }
  }
  return result;
}

TEST(DataLoader, TransformsDependOnSampleAndEpochNotOnOrder) {
  const std::vector<Transform> transforms{Normalize{{0.0F}, {0.5F}}, RandomHorizontalFlip{}};
  DataLoader plain(numbered(50), {.batch = 3, .seed = 5, .transforms = transforms});
  DataLoader shuffled(numbered(50),
                      {.batch = 8, .shuffle = true, .seed = 5, .transforms = transforms});
  const std::vector<float> first = transformed_epoch(plain);
  EXPECT_EQ(transformed_epoch(shuffled), first);
  const std::vector<float> second = transformed_epoch(plain);
  EXPECT_NE(second, first);
  int flipped = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const float straight = 2.0F * static_cast<float>(i);
    EXPECT_TRUE(first[i] == straight || first[i] == straight + 1.0F) << first[i];
    flipped += first[i] == straight ? 0 : 1;
  }
  EXPECT_NEAR(flipped, 25, 12);
}

TEST(DataLoader, TakesAnyFunctionAsATransform) {
  DataLoader loader(numbered(3), {.transforms = {[](const ImageView& image, SampleRandom&) {
                                    for (float& pixel : image.pixels) pixel += 100.0F;
                                  }}});
  EXPECT_THAT(transformed_epoch(loader), ElementsAre(100.0F, 101.0F, 102.0F));
}

TEST(DataLoader, RefusesRequestsThatMakeNoSense) {
  const auto refused = [](ErrorKind kind, std::string_view part, std::shared_ptr<Dataset> data,
                          const LoaderOptions& options) {
    expect_error(kind, part, [&] { DataLoader(data, options); });
  };
  refused(ErrorKind::argument, "no data set", nullptr, {});
  refused(ErrorKind::argument, "batch 0, wanted 1 or more", numbered(3), {.batch = 0});
  refused(ErrorKind::argument, "prefetch -1", numbered(3), {.prefetch = -1});
  refused(ErrorKind::argument, "the data set is empty", numbered(0), {});
  refused(ErrorKind::argument, "drop_last leaves no batch: 3 samples, batch 4", numbered(3),
          {.batch = 4, .drop_last = true});
  const Tensor ids = Tensor::from(Shape{2}, std::vector<std::int64_t>{0, 1});
  refused(ErrorKind::type, "transforms need an f32 input, found 'ids' i64[]",
          tensor_dataset({{"ids", ids}}, {"y", ids}), {.transforms = {Normalize{{0}, {1}}}});
  refused(ErrorKind::argument, "a transform is empty", numbered(3), {.transforms = {Transform{}}});
  refused(ErrorKind::shape, "a sample is [], wanted [C,H,W] or [F]",
          tensor_dataset({{"x", Tensor::zeros(DType::f32, Shape{2})}}, {"y", ids}),
          {.transforms = {Normalize{{0}, {1}}}});
}

/// Each batch of each shard, one behind the other.
Order joined_shards(std::int64_t size, std::int64_t batch, int count, bool equal) {
  std::vector<DataLoader> loaders;
  for (int index = 0; index < count; ++index) {
    loaders.emplace_back(numbered(size), LoaderOptions{.batch = batch,
                                                       .shuffle = true,
                                                       .seed = 7,
                                                       .shard = {index, count},
                                                       .equal_shards = equal});
  }
  std::vector<std::vector<Order>> parts;
  for (DataLoader& loader : loaders) {
    parts.emplace_back();
    for (const Batch& part : loader) {
      const auto targets = part.target.values<const std::int64_t>();
      parts.back().emplace_back(targets.begin(), targets.end());
    }
  }
  Order order;
  for (std::size_t i = 0; i < parts.back().size(); ++i) {
    for (const auto& part : parts) {
      if (i < part.size()) order.insert(order.end(), part[i].begin(), part[i].end());
    }
  }
  return order;
}

TEST(DataLoader, ShardsShareTheBatchesOfOneLoader) {
  DataLoader alone(numbered(22), {.batch = 8, .shuffle = true, .seed = 7});
  const Order whole = epoch_of(alone);
  EXPECT_EQ(joined_shards(22, 8, 2, true), whole);
  EXPECT_EQ(joined_shards(22, 8, 4, false), whole);
  // The last batch, of 6, gives each of four loaders one.
  const Order all_but_two(whole.begin(), whole.end() - 2);
  EXPECT_EQ(joined_shards(22, 8, 4, true), all_but_two);
  // Of 2 samples, four loaders get none each, or two of them one.
  EXPECT_EQ(joined_shards(18, 8, 4, true).size(), 16U);
  EXPECT_EQ(joined_shards(18, 8, 4, false).size(), 18U);
}

TEST(DataLoader, RefusesShardsThatDoNotFit) {
  expect_error(ErrorKind::argument, "shard 2 of 2", [] {
    DataLoader(numbered(8), {.batch = 4, .shard = {2, 2}});
  });
  expect_error(ErrorKind::argument, "a batch of 10 for 4 shards, wanted a multiple: 12 is one", [] {
    DataLoader(numbered(20), {.batch = 10, .shard = {0, 4}});
  });
  expect_error(ErrorKind::argument, "wanted a multiple: 9223372036854775806 is one", [] {
    DataLoader(numbered(20), {.batch = INT64_MAX, .shard = {0, 2}});
  });
  expect_error(ErrorKind::argument, "3 samples for 4 shards", [] {
    DataLoader(numbered(3), {.batch = 4, .shard = {0, 4}});
  });
}

}  // namespace
}  // namespace graft
