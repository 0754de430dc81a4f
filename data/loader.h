#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "data/dataset.h"
#include "data/transforms.h"

namespace graft {

/// One of several loaders, of several processes, that share the batches of one data set.
struct Shard {
  int index = 0;
  int count = 1;
};

struct LoaderOptions {
  /// The number of samples in a batch: with a shard, in the joint batch of all of them.
  std::int64_t batch = 32;
  /// Another order in each epoch, made from seed and epoch; otherwise the data set's order.
  bool shuffle = false;
  /// Decides the order when shuffling, and what random transforms draw.
  std::uint64_t seed = 0;
  /// Leaves out the last batch when it is smaller than the others.
  bool drop_last = false;
  /// The loader gives its part of each batch, one behind the other in the order of the shards: with
  /// the same data set and options, all loaders together give what one would give alone, in the
  /// same batches. The batch must be a multiple of the count.
  Shard shard = {};
  /// In the last batch all shards get as many samples, and those that are left, fewer than there
  /// are shards, are left out; otherwise the last parts may differ by one sample, and some loaders
  /// have a batch less.
  bool equal_shards = true;
  /// How many batches are made ahead of the one in use.
  int prefetch = 2;
  /// Applied in order to input 0 of each sample; none may be empty.
  std::vector<Transform> transforms = {};
};

/// Reads a data set batch by batch on a thread of its own:
/// `for (const Batch& batch : DataLoader(data, {.batch = 32, .shuffle = true, .seed = 7}))`.
/// Each `begin()` starts the next epoch. A batch is valid until the iterator advances: its memory
/// is one of prefetch + 1 buffers that are used in turn (`clone` a tensor to keep it).
/// What the data set or a transform throws comes out of `begin()` or `++`, after the batches
/// before it. The loader itself belongs to one thread.
class DataLoader {
  struct State;

 public:
  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;

    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return batch_; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t /*end*/) {
      return it.batch_ == nullptr;
    }

   private:
    friend class DataLoader;
    Iterator(State* state, std::int64_t first);

    State* state_;
    std::int64_t begun_;  // how many had been begun with it
    std::int64_t index_;
    const Batch* batch_ = nullptr;
  };

  /// Allocates the buffers. Throws Error{argument} for a null or an empty data set, options that
  /// make no sense or leave no batch, Error{shape} or Error{type} if transforms do not fit input 0.
  explicit DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options = {});
  /// Stops the thread and waits for it.
  ~DataLoader();
  DataLoader(DataLoader&& other) noexcept;
  DataLoader& operator=(DataLoader&& other) noexcept;

  /// Ends an epoch that is still going on and starts the next: iterators of the one before then
  /// throw Error{argument} at their next step.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  const Shard& shard() const;
  /// The number of batches in an epoch.
  std::int64_t batches() const;
  /// The epoch that the next `begin()` gives; the first is 0.
  std::int64_t epoch() const;
  /// To resume: the next `begin()` gives this epoch. Throws Error{argument} if negative.
  void set_epoch(std::int64_t epoch);
  /// To resume within an epoch: the next `begin()` leaves out so many batches, which costs no more
  /// than their order; where it leaves out all, `begin()` is at the end and must not be read.
  /// Throws Error{argument} if negative or more than an epoch has.
  void skip(std::int64_t batches);
  const Dataset& dataset() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace graft
