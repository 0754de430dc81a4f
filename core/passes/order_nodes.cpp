// List scheduling: among the nodes whose inputs are there, one that frees memory goes first, else
// the one that stood first. Start at Scheduler::run. Linear in nodes and edges, but for a
// logarithm.
#include <algorithm>
#include <queue>
#include <utility>

#include "core/ops/alias.h"
#include "core/passes/order_nodes.h"

namespace graft::passes {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// A list of numbers in Lists.
struct List {
  int last = -1;
};

/// Many short lists in one array.
class Lists {
 public:
  void add(List& list, int value) {
    links_.push_back({value, list.last});
    list.last = static_cast<int>(links_.size()) - 1;
  }
  /// The first, from the end, for which `is_wanted(value)`; -1 without any.
  template <class IsWanted>
  int find(const List& list, const IsWanted& is_wanted) const {
    for (int i = list.last; i >= 0; i = links_[at(i)].before) {
      if (is_wanted(links_[at(i)].value)) return links_[at(i)].value;
    }
    return -1;
  }
  /// From the end. `visit` may add to any list.
  template <class Visit>
  void for_each(const List& list, const Visit& visit) const {
    for (int i = list.last; i >= 0; i = links_[at(i)].before) visit(links_[at(i)].value);
  }

 private:
  struct Link {
    int value;
    int before;
  };
  std::vector<Link> links_;
};

/// Memory of a value, its views and its updates.
struct Block {
  std::int64_t bytes = 0;  ///< 0 where the step does not free it: inputs, initializers, outputs
  List readers{};
  int readers_left = 0;
  int last_reader = -1;
  /// Those that an update of the variable must wait for: readers since the last one.
  List readers_of_state{};
};

struct Item {
  List followers{};  ///< that wait for this one
  int waits_for = 0;
  List blocks{};  ///< that it reads, each once
  std::int64_t allocates = 0;
  bool may_jump = false;
  bool is_view = false;
  bool is_placed = false;
};

class Scheduler {
  using ValueIndex = OperandTable::ValueIndex;

 public:
  Scheduler(const OperandTable& operands, bool only_updates)
      : operands_(operands), known_(operands.value_count()) {
    items_.reserve(operands.items().size());
    for (const OperandTable::Item& item : operands.items()) {
      items_.push_back({});
      items_.back().may_jump = !only_updates || item.updates_state;
      items_.back().is_view = item.is_view;
      connect(static_cast<int>(items_.size()) - 1, item);
    }
  }

  /// None if they stand so.
  std::vector<int> run() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].waits_for == 0) make_ready(static_cast<int>(i));
    }
    std::vector<int> order;
    order.reserve(items_.size());
    bool changed = false;
    for (int next = take_next(); next >= 0; next = take_next()) {
      changed = changed || at(next) != order.size();
      order.push_back(next);
      place(next);
    }
    return changed ? order : std::vector<int>();
  }

 private:
  /// What is known of a value: its block, and the item that makes it, if one does.
  struct Known {
    int block = -1;
    int maker = -1;
  };

  int add_block(std::size_t bytes) {
    blocks_.push_back({.bytes = static_cast<std::int64_t>(bytes)});
    return static_cast<int>(blocks_.size()) - 1;
  }

  /// Memory that is not the step's own has a block too, of 0 bytes.
  Known look_up(ValueIndex value) {
    Known& known = known_[at(value)];
    if (known.block < 0) known.block = add_block(0);
    return known;
  }

  /// Those before it are connected: makers stand before readers.
  void connect(int i, const OperandTable::Item& item) {
    for (const auto& reads : {operands_.inputs(item), operands_.read_by_bodies(item)}) {
      for (const ValueIndex value : reads) {
        if (value == OperandTable::kNone) continue;
        const Known known = look_up(value);
        if (known.maker >= 0) follow(i, known.maker);
        read(i, known.block);
      }
    }
    for (int k = 0; k < static_cast<int>(item.outputs); ++k) make(i, item, k);
  }

  void follow(int i, int earlier) {
    lists_.add(items_[at(earlier)].followers, i);
    ++items_[at(i)].waits_for;
  }

  void read(int i, int index) {
    Block& block = blocks_[at(index)];
    if (std::exchange(block.last_reader, i) == i) return;
    lists_.add(items_[at(i)].blocks, index);
    lists_.add(block.readers, i);
    ++block.readers_left;
    lists_.add(block.readers_of_state, i);
  }

  void make(int i, const OperandTable::Item& item, int index) {
    const ValueIndex value = operands_.outputs(item)[at(index)];
    if (value == OperandTable::kNone) return;
    const OperandTable::Output& output = operands_.output(value);
    for (const AliasKind kind : {AliasKind::view, AliasKind::state}) {
      const Alias* const alias = find_alias(*item.aliases, index, kind);
      const ValueIndex source =
          alias == nullptr ? OperandTable::kNone : operands_.input(item, alias->input);
      if (source == OperandTable::kNone) continue;
      const int block = look_up(source).block;
      known_[at(value)] = {block, i};
      if (kind == AliasKind::state) wait_for_readers(i, block);
      if (output.is_graph_output) blocks_[at(block)].bytes = 0;
      return;
    }
    const int block = add_block(output.is_graph_output ? 0 : output.bytes);
    known_[at(value)] = {block, i};
    items_[at(i)].allocates += blocks_[at(block)].bytes;
  }

  void wait_for_readers(int i, int block) {
    List& readers = blocks_[at(block)].readers_of_state;
    const List since_last = readers;
    readers = {};
    lists_.add(readers, i);
    lists_.for_each(since_last, [&](int reader) {
      if (reader != i) follow(i, reader);
    });
  }

  /// Bytes that are free after the node and were not before it. Grows as others are placed.
  std::int64_t freed_by(int i) const {
    std::int64_t freed = -items_[at(i)].allocates;
    lists_.for_each(items_[at(i)].blocks, [&](int block) {
      if (blocks_[at(block)].readers_left == 1) freed += blocks_[at(block)].bytes;
    });
    return freed;
  }

  void make_ready(int i) {
    ready_.push(-i);
    consider_jump(i);
  }

  void consider_jump(int i) {
    if (!items_[at(i)].may_jump) return;
    const std::int64_t freed = freed_by(i);
    // Views cost nothing, and those that read them may free something.
    if (freed > 0 || items_[at(i)].is_view) shrinking_.emplace(freed, -i);
  }

  /// -1 when all are placed. What frees most comes first, then what stood first.
  int take_next() {
    const auto is_placed = [&](int negative) { return items_[at(-negative)].is_placed; };
    while (!shrinking_.empty() && is_placed(shrinking_.top().second)) shrinking_.pop();
    if (!shrinking_.empty()) return -shrinking_.top().second;
    while (!ready_.empty() && is_placed(ready_.top())) ready_.pop();
    return ready_.empty() ? -1 : -ready_.top();
  }

  void place(int i) {
    items_[at(i)].is_placed = true;
    lists_.for_each(items_[at(i)].blocks, [&](int block) { count_read(block); });
    lists_.for_each(items_[at(i)].followers, [&](int follower) {
      if (--items_[at(follower)].waits_for == 0) make_ready(follower);
    });
  }

  /// The last reader but one has read: the last one now frees the block.
  void count_read(int index) {
    Block& block = blocks_[at(index)];
    if (--block.readers_left != 1) return;
    const int last = lists_.find(block.readers, [&](int i) { return !items_[at(i)].is_placed; });
    if (items_[at(last)].waits_for == 0) consider_jump(last);
  }

  const OperandTable& operands_;
  std::vector<Item> items_;
  std::vector<Known> known_;  // by value
  std::vector<Block> blocks_;
  Lists lists_;
  /// Those whose inputs are there, and some that are placed; numbers are negative, since the
  /// highest comes first.
  std::priority_queue<int> ready_;
  std::priority_queue<std::pair<std::int64_t, int>> shrinking_;  // bytes freed, node
};

}  // namespace

/// Not reorder(): what it checks holds, since each waited for what it reads.
void stand_in_order(Graph& graph, const OperandTable& operands, const std::vector<int>& order) {
  for (const int item : order) graph.move(operands.items()[at(item)].node, nullptr);
}

bool move_updates(Graph& graph) {
  const OperandTable operands(graph);
  const std::vector<int> order = Scheduler(operands, true).run();
  stand_in_order(graph, operands, order);
  return !order.empty();
}

std::vector<int> order_for_memory(const OperandTable& operands) {
  return Scheduler(operands, false).run();
}

bool order_for_memory(Graph& graph) {
  const OperandTable operands(graph);
  const std::vector<int> order = order_for_memory(operands);
  stand_in_order(graph, operands, order);
  return !order.empty();
}

}  // namespace graft::passes
