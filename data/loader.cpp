#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/rng.h"

namespace graft {
namespace {

/// Keeps the loader's streams apart from those that others draw with the same seed ("data").
constexpr std::uint64_t kSeedOfData = 0x6461'7461'0000'0000;
/// Set in the stream of an epoch's order, clear in those of samples.
constexpr std::uint64_t kOrderStream = std::uint64_t{1} << 63;

void check(const Shard& shard, std::int64_t batch, std::int64_t size) {
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count) {
    fail(ErrorKind::argument, "data loader: shard ", shard.index, " of ", shard.count,
         ", wanted 0 to below a count of at least 1");
  }
  if (const std::int64_t rest = batch % shard.count; rest != 0) {
    const bool has_next = batch - rest <= INT64_MAX - shard.count;
    fail(ErrorKind::argument, "data loader: a batch of ", batch, " for ", shard.count,
         " shards, wanted a multiple: ", batch - rest + (has_next ? shard.count : 0), " is one");
  }
  if (size < shard.count) {
    fail(ErrorKind::argument, "data loader: ", size, " samples for ", shard.count,
         " shards, wanted at least one each");
  }
  checked_multiply(std::min(batch, size), shard.count);  // what their parts are counted by
}

void check(const Dataset* dataset, const LoaderOptions& options) {
  if (dataset == nullptr) fail(ErrorKind::argument, "data loader: no data set");
  if (options.batch < 1) {
    fail(ErrorKind::argument, "data loader: batch ", options.batch, ", wanted 1 or more");
  }
  if (options.prefetch < 0) {
    fail(ErrorKind::argument, "data loader: prefetch ", options.prefetch, ", wanted 0 or more");
  }
  if (dataset->size() == 0) fail(ErrorKind::argument, "data loader: the data set is empty");
  check(options.shard, options.batch, dataset->size());
  if (options.drop_last && dataset->size() < options.batch) {
    fail(ErrorKind::argument, "data loader: drop_last leaves no batch: ", dataset->size(),
         " samples, batch ", options.batch);
  }
  if (options.transforms.empty()) return;
  if (!std::ranges::all_of(options.transforms, [](const Transform& t) { return bool{t}; })) {
    fail(ErrorKind::argument, "data loader: a transform is empty, wanted functions");
  }
  const SampleField& field = dataset->info().inputs[0];
  if (field.dtype != DType::f32) {
    fail(ErrorKind::type, "data loader: transforms need an f32 input, found '", field.name, "' ",
         describe(field.dtype, field.shape));
  }
  image_view({}, field.shape);
}

/// The first rows of a tensor; shares its memory.
Tensor first_rows(const Tensor& all, std::int64_t rows) {
  std::vector<std::int64_t> dims = all.shape().dims();
  dims[0] = rows;
  return Tensor::view(all.dtype(), Shape(std::move(dims)), all.data(),
                      std::make_shared<Tensor>(all));
}

Batch first_rows(const Batch& all, std::int64_t rows) {
  Batch part;
  part.size = rows;
  for (const Tensor& input : all.inputs) part.inputs.push_back(first_rows(input, rows));
  part.target = first_rows(all.target, rows);
  for (const Tensor& target : all.further_targets) {
    part.further_targets.push_back(first_rows(target, rows));
  }
  return part;
}

/// Samples of the epoch's order: first to last - 1.
struct Range {
  std::int64_t first;
  std::int64_t last;
  std::int64_t size() const { return last - first; }
};

/// What the shard gets of a batch.
Range part_of(const Range& batch, const LoaderOptions& options) {
  const auto [index, count] = options.shard;
  if (options.equal_shards) {
    const std::int64_t each = batch.size() / count;
    return {batch.first + each * index, batch.first + each * (index + 1)};
  }
  return {batch.first + batch.size() * index / count,
          batch.first + batch.size() * (index + 1) / count};
}

/// Memory for one batch, also seen as the smaller batch at the end of an epoch.
struct Buffer {
  Batch full;
  Batch last;
};

}  // namespace

/// A ring of buffers between the thread, which fills batch n into buffer n mod ring, and the
/// consumer. The thread may be at most a ring ahead of what the consumer has given back.
struct DataLoader::State {
  State(std::shared_ptr<const Dataset> data, LoaderOptions wanted);
  ~State() { stop(); }

  /// Returns the first batch that comes.
  std::int64_t start();
  void stop();
  /// Waits for batch `index`; null after the last. Throws what the thread threw.
  const Batch* wait(std::int64_t index);
  /// Gives the buffers of all batches before `index` back.
  void release(std::int64_t index);

  std::shared_ptr<const Dataset> dataset;
  LoaderOptions options;
  std::int64_t batches = 0;
  std::int64_t next_epoch = 0;
  std::int64_t skipped = 0;  // of the next epoch
  std::int64_t begun = 0;    // epochs so far

 private:
  void produce(std::int64_t epoch, std::int64_t first);
  void reserve_order(std::int64_t size);
  void order_samples(std::int64_t epoch);
  Range range_of(std::int64_t index) const;
  void fill(const Batch& batch, std::int64_t first, std::int64_t epoch) const;
  void transform(const SampleRow& row, std::int64_t sample, std::int64_t epoch) const;
  void check_label(const SampleRow& row, std::int64_t sample) const;
  const Batch& batch_at(std::int64_t index) const;

  std::uint64_t seed() const { return options.seed ^ kSeedOfData; }
  std::int64_t ring() const { return static_cast<std::int64_t>(buffers_.size()); }

  std::vector<Buffer> buffers_;
  std::vector<std::int64_t> order_;  // of samples that are shuffled; the thread's own while it runs
  std::thread thread_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::int64_t produced_ = 0;
  std::int64_t released_ = 0;
  bool stopping_ = false;
  std::exception_ptr failure_;
};

DataLoader::State::State(std::shared_ptr<const Dataset> data, LoaderOptions wanted)
    : dataset(std::move(data)), options(std::move(wanted)) {
  check(dataset.get(), options);
  const std::int64_t size = dataset->size();
  batches = size / options.batch;
  const std::int64_t rest = options.drop_last ? 0 : range_of(batches).size();
  batches += rest > 0 ? 1 : 0;
  const std::int64_t ahead = std::min<std::int64_t>(options.prefetch, batches - 1);
  buffers_.resize(static_cast<std::size_t>(ahead + 1));
  for (Buffer& buffer : buffers_) {
    buffer.full = make_batch(dataset->info(), range_of(0).size());
    if (rest > 0) buffer.last = first_rows(buffer.full, rest);
  }
  if (options.shuffle) reserve_order(size);
}

void DataLoader::State::reserve_order(std::int64_t size) {
  try {
    order_.resize(static_cast<std::size_t>(size));
  } catch (const std::exception&) {  // of the allocator, or of the vector
    fail(ErrorKind::memory, "data loader: no memory for the order of ", size,
         " samples; without shuffle none is needed");
  }
}

std::int64_t DataLoader::State::start() {
  stop();
  const std::int64_t first = std::exchange(skipped, 0);
  produced_ = first;
  released_ = first;
  stopping_ = false;
  failure_ = nullptr;
  try {
    thread_ = std::thread([this, epoch = next_epoch, first] { produce(epoch, first); });
  } catch (const std::system_error& error) {
    fail(ErrorKind::memory, "data loader: cannot start a thread: ", error.what());
  }
  ++next_epoch;
  ++begun;
  return first;
}

void DataLoader::State::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

const Batch* DataLoader::State::wait(std::int64_t index) {
  if (index >= batches) return nullptr;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return produced_ > index || failure_ != nullptr; });
  if (produced_ <= index) std::rethrow_exception(failure_);
  return &batch_at(index);
}

void DataLoader::State::release(std::int64_t index) {
  {
    const std::lock_guard lock(mutex_);
    released_ = index;
  }
  changed_.notify_all();
}

void DataLoader::State::produce(std::int64_t epoch, std::int64_t first) {
  try {
    order_samples(epoch);
    for (std::int64_t index = first; index < batches; ++index) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || index - released_ < ring(); });
        if (stopping_) return;
      }
      fill(batch_at(index), range_of(index).first, epoch);
      {
        const std::lock_guard lock(mutex_);
        produced_ = index + 1;
      }
      changed_.notify_all();
    }
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
    changed_.notify_all();
  }
}

void DataLoader::State::order_samples(std::int64_t epoch) {
  if (!options.shuffle) return;
  std::iota(order_.begin(), order_.end(), 0);
  graft::shuffle(order_.begin(), order_.end(),
                 Philox(seed(), kOrderStream | static_cast<std::uint64_t>(epoch)));
}

const Batch& DataLoader::State::batch_at(std::int64_t index) const {
  const Buffer& buffer = at(buffers_, index % ring());
  return range_of(index).size() < buffer.full.size ? buffer.last : buffer.full;
}

Range DataLoader::State::range_of(std::int64_t index) const {
  const std::int64_t first = index * options.batch;
  return part_of({first, first + std::min(options.batch, dataset->size() - first)}, options);
}

void DataLoader::State::fill(const Batch& batch, std::int64_t first, std::int64_t epoch) const {
  for (std::int64_t i = 0; i < batch.size; ++i) {
    const std::int64_t sample = options.shuffle ? at(order_, first + i) : first + i;
    const SampleRow row(batch, i);
    dataset->read(sample, row);
    if (!options.transforms.empty()) transform(row, sample, epoch);
    if (dataset->info().classes > 0) check_label(row, sample);
  }
}

void DataLoader::State::transform(const SampleRow& row, std::int64_t sample,
                                  std::int64_t epoch) const {
  const auto stream =
      static_cast<std::uint64_t>(epoch) * static_cast<std::uint64_t>(dataset->size()) +
      static_cast<std::uint64_t>(sample);
  SampleRandom random(seed(), stream & ~kOrderStream);
  const ImageView image = image_view(row.input<float>(), dataset->info().inputs[0].shape);
  for (const Transform& apply : options.transforms) apply(image, random);
}

void DataLoader::State::check_label(const SampleRow& row, std::int64_t sample) const {
  const std::int64_t label = row.target<std::int64_t>()[0];
  if (label < 0 || label >= dataset->info().classes) {
    fail(ErrorKind::argument, "data loader: label ", label, " of sample ", sample,
         " is out of range, wanted 0 to ", dataset->info().classes - 1);
  }
}

DataLoader::Iterator::Iterator(State* state, std::int64_t first)
    : state_(state), begun_(state->begun), index_(first), batch_(state->wait(first)) {}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  if (begun_ != state_->begun) {
    fail(ErrorKind::argument,
         "data loader: another epoch has begun since this one, and its batches ",
         "have taken the place of this one's: use a second DataLoader within an epoch");
  }
  ++index_;
  state_->release(index_);
  batch_ = state_->wait(index_);
  return *this;
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : state_(std::make_unique<State>(std::move(dataset), std::move(options))) {}
DataLoader::~DataLoader() = default;
DataLoader::DataLoader(DataLoader&& other) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&& other) noexcept = default;

DataLoader::Iterator DataLoader::begin() {
  const std::int64_t first = state_->start();
  return Iterator(state_.get(), first);
}

const Shard& DataLoader::shard() const {
  return state_->options.shard;
}
std::int64_t DataLoader::batches() const {
  return state_->batches;
}
std::int64_t DataLoader::epoch() const {
  return state_->next_epoch;
}
const Dataset& DataLoader::dataset() const {
  return *state_->dataset;
}

void DataLoader::set_epoch(std::int64_t epoch) {
  constexpr std::int64_t kMost = INT64_MAX / 2;  // more are counted from there on
  if (epoch < 0) fail(ErrorKind::argument, "data loader: epoch ", epoch, " is negative");
  if (epoch > kMost) {
    fail(ErrorKind::argument, "data loader: epoch ", epoch, ", wanted 0 to ", kMost);
  }
  state_->next_epoch = epoch;
}

void DataLoader::skip(std::int64_t batches) {
  if (batches < 0 || batches > state_->batches) {
    fail(ErrorKind::argument, "data loader: ", batches, " batches to leave out, wanted 0 to ",
         state_->batches);
  }
  state_->skipped = batches;
}

}  // namespace graft
