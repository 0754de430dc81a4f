#include "tests/train/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <thread>
#include <vector>

#include "core/base/parallel.h"

namespace graft::test {
namespace {

/// What the ranks of one call show each other.
struct Meeting {
  explicit Meeting(int size) : all(size), shown(static_cast<std::size_t>(size)) {}
  std::barrier<> all;
  std::vector<std::span<std::byte>> shown;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(int rank, std::shared_ptr<Meeting> meeting)
      : rank_(rank), meeting_(std::move(meeting)) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_->shown.size()); }
  void all_reduce(std::span<float> values) override { sum(values); }
  void all_reduce(std::span<double> values) override { sum(values); }
  void broadcast(std::span<std::byte> bytes, int root) override {
    show(bytes);
    if (rank_ != root) std::ranges::copy(shown(root), bytes.begin());
    barrier();
  }
  void barrier() override { meeting_->all.arrive_and_wait(); }
  [[noreturn]] void abort(int /*code*/) override { std::abort(); }

 private:
  std::span<std::byte> shown(int rank) const {
    return meeting_->shown[static_cast<std::size_t>(rank)];
  }
  void show(std::span<std::byte> bytes) {
    meeting_->shown[static_cast<std::size_t>(rank_)] = bytes;
    barrier();
    for (int other = 0; other < size(); ++other) ASSERT_EQ(shown(other).size(), bytes.size());
  }
  template <class T>
  void sum(std::span<T> values) {
    show(std::as_writable_bytes(values));
    std::vector<T> sums(values.size());
    for (int other = 0; other < size(); ++other) {
      const T* const theirs = reinterpret_cast<const T*>(shown(other).data());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += theirs[i];
    }
    barrier();
    std::ranges::copy(sums, values.begin());
  }

  int rank_;
  std::shared_ptr<Meeting> meeting_;
};

}  // namespace

void run_ranks(int size, const std::function<void(std::shared_ptr<Communicator>)>& rank) {
  const int threads = thread_count();
  set_thread_count(1);
  const auto meeting = std::make_shared<Meeting>(size);
  std::vector<std::thread> all;
  for (int i = 0; i < size; ++i) {
    all.emplace_back([&, i] { rank(std::make_shared<ThreadRank>(i, meeting)); });
  }
  for (std::thread& thread : all) thread.join();
  set_thread_count(threads);
}

}  // namespace graft::test
