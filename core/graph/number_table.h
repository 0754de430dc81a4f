#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/graph/graph.h"

namespace graft {

/// A table of what belongs to one graph, values or nodes, by their numbers there: a vector, for
/// each of which it has one entry where a PointerMap has two to four with a key each. What belongs
/// to a graph or to its bodies is for a PointerMap.
template <class Key, class T>
class NumberTable {
 public:
  NumberTable() = default;
  /// With an entry for each that the graph has by now.
  explicit NumberTable(const Graph& graph, T initial = {})
      : graph_(&graph), entries_(graph.numbered<Key>(), initial), initial_(std::move(initial)) {}

  /// With these entries, by number.
  NumberTable(const Graph& graph, std::vector<T> entries, T initial)
      : graph_(&graph), entries_(std::move(entries)), initial_(std::move(initial)) {}

  /// `initial` where nothing else was written. The key belongs to the graph.
  const T& operator[](const Key& key) const {
    assert(&key.graph() == graph_);
    return key.number() < entries_.size() ? entries_[key.number()] : initial_;
  }
  /// Valid until an entry is asked for of one that came later.
  T& operator[](const Key& key) {
    assert(&key.graph() == graph_);
    if (key.number() >= entries_.size()) entries_.resize(key.number() + std::size_t{1}, initial_);
    return entries_[key.number()];
  }

 private:
  const Graph* graph_ = nullptr;
  std::vector<T> entries_;
  T initial_{};
};

template <class T>
using ValueTable = NumberTable<Value, T>;
template <class T>
using NodeTable = NumberTable<Node, T>;

}  // namespace graft
