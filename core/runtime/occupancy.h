#pragma once

#include <cstddef>
#include <vector>

#include "core/base/pool.h"

namespace graft {

/// Which bytes of an arena are taken at which steps. A tree over the steps: each of its nodes
/// stands for a range of steps and knows which bytes are taken throughout the range, and which at
/// some step of it. So a question about a range of steps reads a few lists of taken bytes, however
/// many buffers there are; buffers that touch are one entry.
class Occupancy {
 public:
  /// Nothing is taken yet in steps 0 to `steps` - 1.
  explicit Occupancy(int steps);

  /// The lowest offset behind which `bytes` are free at all steps from `first` to `last`.
  std::size_t lowest_fit(int first, int last, std::size_t bytes);
  /// Takes `bytes` > 0 from `offset` on at all steps from `first` to `last`.
  void take(int first, int last, std::size_t offset, std::size_t bytes);

 private:
  struct Span {
    std::size_t begin;
    std::size_t end;
  };
  /// Taken bytes, in order; no two of them overlap or touch.
  using Spans = std::vector<Span, PoolAllocator<Span>>;
  /// A node of the tree, which stands for the steps from `low` to `high`.
  struct Range {
    std::size_t node;
    int low;
    int high;
    Range left() const { return {2 * node, low, (low + high) / 2}; }
    Range right() const { return {2 * node + 1, (low + high) / 2 + 1, high}; }
  };

  static void add(Spans& spans, Span span);
  void take(const Range& range, int first, int last, const Span& span);
  void collect(const Range& range, int first, int last);

  Range root_;
  Pool memory_;  // of the lists
  // By node; 1 is the root, 2i and 2i + 1 are the halves of i.
  std::vector<Spans> throughout_;  // of those that have halves
  std::vector<Spans> sometime_;
  std::vector<const Spans*> found_;  // by `collect`; kept, so that it seldom allocates
};

}  // namespace graft
