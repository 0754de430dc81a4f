#include "core/device/communicator.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

namespace graft {
namespace {

/// Those that live, by their ids.
struct Known {
  std::mutex mutex;
  std::map<std::int64_t, Communicator*> by_id;
  std::int64_t next = 1;
};

/// Never destroyed: those that live as long as the process leave it last.
Known& known() {
  static Known& all = *new Known;
  return all;
}

class Alone final : public Communicator {
 public:
  Alone() : Communicator(0) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(std::span<float> /*values*/) override {}
  void all_reduce(std::span<double> /*values*/) override {}
  void broadcast(std::span<std::byte> /*bytes*/, int /*root*/) override {}
  void barrier() override {}
  [[noreturn]] void abort(int code) override { std::_Exit(code); }
};

std::int64_t add(Communicator* one) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.by_id.emplace(all.next, one);
  return all.next++;
}

}  // namespace

Communicator::Communicator() : id_(add(this)) {}

Communicator::~Communicator() {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  all.by_id.erase(id_);
}

void Communicator::all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) {
  const std::size_t piece = sent.size() / static_cast<std::size_t>(size());
  std::vector<std::byte> theirs(sent.size());
  for (int root = 0; root < size(); ++root) {
    if (root == rank()) std::ranges::copy(sent, theirs.begin());
    broadcast(theirs, root);
    std::ranges::copy(
        std::span(theirs).subspan(static_cast<std::size_t>(rank()) * piece, piece),
        received.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(root) * piece));
  }
}

void Communicator::all_gather(std::span<std::byte> all) {
  const std::size_t piece = all.size() / static_cast<std::size_t>(size());
  for (int root = 0; root < size(); ++root) {
    broadcast(all.subspan(static_cast<std::size_t>(root) * piece, piece), root);
  }
}

Communicator& alone() {
  static Alone one;
  return one;
}

Communicator& or_alone(const std::shared_ptr<Communicator>& communicator) {
  return communicator == nullptr ? alone() : *communicator;
}

Communicator& communicator_of(std::int64_t id) {
  if (id == alone().id()) return alone();
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  const auto at = all.by_id.find(id);
  assert(at != all.by_id.end());
  return *at->second;
}

}  // namespace graft
