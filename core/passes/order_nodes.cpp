// List scheduling: among the nodes whose inputs are there, one that frees memory goes first, else
// the one that stood first. Start at Scheduler::run. Linear in nodes and edges, but for a
// logarithm.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/graph/order.h"
#include "core/ops/alias.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// Memory of a value, its views and its updates.
struct Block {
  std::int64_t bytes = 0;  ///< 0 where the step does not free it: inputs, initializers, outputs
  std::vector<int> readers{};
  std::size_t readers_left = 0;
  /// Those that an update of the variable must wait for: readers since the last one.
  std::vector<int> readers_of_state{};
};

struct Item {
  Node* node;
  std::vector<int> followers{};  ///< that wait for this one
  std::size_t waits_for = 0;
  std::vector<int> blocks{};  ///< that it reads, each once
  std::int64_t allocates = 0;
  bool may_jump = false;
};

class Scheduler {
 public:
  Scheduler(Graph& graph, bool only_updates) : graph_(graph) {
    for (const auto& node : graph.nodes()) {
      index_[node.get()] = static_cast<int>(items_.size());
      items_.push_back({.node = node.get()});
      items_.back().may_jump = !only_updates || updates_state(*node);
    }
    for (std::size_t i = 0; i < items_.size(); ++i) connect(static_cast<int>(i));
    is_placed_.resize(items_.size());
    for (Block& block : blocks_) block.readers_left = block.readers.size();
  }

  bool run() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].waits_for == 0) make_ready(static_cast<int>(i));
    }
    std::vector<Node*> order;
    bool changed = false;
    while (!ready_.empty()) {
      const int next = shrinking_.empty() ? *ready_.begin() : shrinking_.begin()->second;
      changed = changed || at(next) != order.size();
      order.push_back(items_[at(next)].node);
      place(next);
    }
    if (changed) reorder(graph_, order);
    return changed;
  }

 private:
  /// Memory that is not the step's own has a block too, of 0 bytes.
  int block_of(const Value* value) {
    const auto [found, is_new] = block_of_.try_emplace(value, static_cast<int>(blocks_.size()));
    if (is_new) {
      const bool is_freed = value->producer() != nullptr && !value->is_graph_output();
      const auto bytes = is_freed ? bytes_of(value->dtype(), value->known_shape().size()) : 0;
      blocks_.push_back({.bytes = static_cast<std::int64_t>(bytes)});
    }
    return found->second;
  }

  void connect(int i) {
    const Node& node = *items_[at(i)].node;
    for_each_read(node, [&](const Value& value) {
      if (&value.graph() != &graph_) return;  // of a body
      if (value.producer() != nullptr) follow(i, index_.at(value.producer()));
      read(i, block_of(&value));
    });
    for (int k = 0; k < node.output_count(); ++k) {
      if (node.output(k) != nullptr) make(i, k);
    }
  }

  void follow(int i, int earlier) {
    items_[at(earlier)].followers.push_back(i);
    ++items_[at(i)].waits_for;
  }

  void read(int i, int block) {
    std::vector<int>& blocks = items_[at(i)].blocks;
    if (std::ranges::find(blocks, block) != blocks.end()) return;
    blocks.push_back(block);
    blocks_[at(block)].readers.push_back(i);
    blocks_[at(block)].readers_of_state.push_back(i);
  }

  void make(int i, int output) {
    const Node& node = *items_[at(i)].node;
    const Value* const value = node.output(output);
    for (const AliasKind kind : {AliasKind::view, AliasKind::state}) {
      const Alias* const alias = find_alias(node, output, kind);
      if (alias == nullptr || node.input(alias->input) == nullptr) continue;
      const int block = block_of(node.input(alias->input));
      block_of_[value] = block;
      if (kind == AliasKind::state) wait_for_readers(i, block);
      if (value->is_graph_output()) blocks_[at(block)].bytes = 0;
      return;
    }
    items_[at(i)].allocates += blocks_[at(block_of(value))].bytes;
  }

  void wait_for_readers(int i, int block) {
    std::vector<int>& readers = blocks_[at(block)].readers_of_state;
    for (const int reader : readers) {
      if (reader != i) follow(i, reader);
    }
    readers = {i};
  }

  /// Bytes that are free after the node and were not before it.
  std::int64_t freed_by(int i) const {
    std::int64_t freed = -items_[at(i)].allocates;
    for (const int block : items_[at(i)].blocks) {
      if (blocks_[at(block)].readers_left == 1) freed += blocks_[at(block)].bytes;
    }
    return freed;
  }

  void make_ready(int i) {
    ready_.insert(i);
    if (!items_[at(i)].may_jump) return;
    const std::int64_t freed = freed_by(i);
    // Views cost nothing, and those that read them may free something.
    if (freed > 0 || is_view(*items_[at(i)].node)) shrinking_.emplace(-freed, i);
  }

  void forget(int i) {
    ready_.erase(i);
    shrinking_.erase({-freed_by(i), i});
  }

  void place(int i) {
    forget(i);
    is_placed_[at(i)] = true;
    for (const int block : items_[at(i)].blocks) count_read(block);
    for (const int follower : items_[at(i)].followers) {
      if (--items_[at(follower)].waits_for == 0) make_ready(follower);
    }
  }

  /// The last reader but one has read: the last one now frees the block.
  void count_read(int index) {
    Block& block = blocks_[at(index)];
    if (block.readers_left != 2) {
      --block.readers_left;
      return;
    }
    const auto last =
        std::ranges::find_if(block.readers, [&](int i) { return !is_placed_[at(i)]; });
    const bool is_ready = ready_.contains(*last);
    if (is_ready) forget(*last);
    --block.readers_left;
    if (is_ready) make_ready(*last);
  }

  Graph& graph_;
  std::unordered_map<const Node*, int> index_;
  std::vector<Item> items_;
  std::unordered_map<const Value*, int> block_of_;
  std::vector<Block> blocks_;
  std::vector<bool> is_placed_;
  std::set<int> ready_;
  std::set<std::pair<std::int64_t, int>> shrinking_;  // bytes freed (negative), node
};

}  // namespace

bool move_updates(Graph& graph) {
  const bool changed = Scheduler(graph, true).run();
  verify_in_debug(graph);
  return changed;
}

bool order_for_memory(Graph& graph) {
  const bool changed = Scheduler(graph, false).run();
  verify_in_debug(graph);
  return changed;
}

}  // namespace graft::passes
