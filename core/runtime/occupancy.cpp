#include "core/runtime/occupancy.h"

#include <algorithm>
#include <bit>

namespace graft {

Occupancy::Occupancy(int steps) : root_{1, 0, std::max(steps, 1) - 1} {
  const std::size_t leaves = std::bit_ceil(static_cast<std::size_t>(root_.high) + 1);
  throughout_.resize(leaves, Spans(memory_));
  sometime_.resize(2 * leaves, Spans(memory_));
}

std::size_t Occupancy::lowest_fit(int first, int last, std::size_t bytes) {
  found_.clear();
  collect(root_, first, last);
  std::size_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Spans* spans : found_) {
      const auto at = std::ranges::upper_bound(*spans, offset, {}, &Span::end);
      if (at == spans->end() || at->begin >= offset + bytes) continue;
      offset = at->end;
      moved = true;
    }
  }
  return offset;
}

/// What is taken at some step from `first` to `last` is taken throughout a range that holds all of
/// them, or sometime in a range that they fill.
void Occupancy::collect(const Range& range, int first, int last) {
  if (last < range.low || range.high < first) return;
  const bool is_filled = first <= range.low && range.high <= last;
  const Spans& spans = (is_filled ? sometime_ : throughout_)[range.node];
  if (!spans.empty()) found_.push_back(&spans);
  if (is_filled) return;
  collect(range.left(), first, last);
  collect(range.right(), first, last);
}

void Occupancy::take(int first, int last, std::size_t offset, std::size_t bytes) {
  take(root_, first, last, {offset, offset + bytes});
}

void Occupancy::take(const Range& range, int first, int last, const Span& span) {
  if (last < range.low || range.high < first) return;
  add(sometime_[range.node], span);
  if (range.low == range.high) return;  // `collect` asks for a whole step only
  if (first <= range.low && range.high <= last) {
    add(throughout_[range.node], span);
    return;
  }
  take(range.left(), first, last, span);
  take(range.right(), first, last, span);
}

void Occupancy::add(Spans& spans, Span span) {
  const auto first = std::ranges::lower_bound(spans, span.begin, {}, &Span::end);
  auto behind = first;
  for (; behind != spans.end() && behind->begin <= span.end; ++behind) {
    span.begin = std::min(span.begin, behind->begin);
    span.end = std::max(span.end, behind->end);
  }
  if (first == behind) {
    spans.insert(first, span);
  } else {
    *first = span;
    spans.erase(std::next(first), behind);
  }
}

}  // namespace graft
