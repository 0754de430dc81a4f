#include "core/runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/base/at.h"
#include "core/runtime/occupancy.h"

namespace graft {
namespace {

int step_count(const std::vector<Lifetime>& lifetimes) {
  int last = -1;
  for (const Lifetime& lifetime : lifetimes) last = std::max(last, lifetime.last);
  return last + 1;
}

/// Places the buffers one after the other, in this order.
MemoryPlan place(const std::vector<Lifetime>& lifetimes, const std::vector<std::size_t>& order) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  Occupancy occupancy(step_count(lifetimes));
  for (const std::size_t index : order) {
    const Lifetime& lifetime = lifetimes[index];
    const std::size_t bytes = aligned(lifetime.bytes);
    const std::size_t offset = occupancy.lowest_fit(lifetime.first, lifetime.last, bytes);
    occupancy.take(lifetime.first, lifetime.last, offset, bytes);
    plan.offsets[index] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + bytes);
  }
  return plan;
}

}  // namespace

std::vector<std::size_t> alive_bytes(const std::vector<Lifetime>& lifetimes) {
  // The difference from one step to the next; less than nothing wraps round, and back.
  std::vector<std::size_t> alive(static_cast<std::size_t>(step_count(lifetimes)) + 1);
  for (const Lifetime& lifetime : lifetimes) {
    at(alive, lifetime.first) += aligned(lifetime.bytes);
    at(alive, lifetime.last + 1) -= aligned(lifetime.bytes);
  }
  alive.pop_back();
  std::partial_sum(alive.begin(), alive.end(), alive.begin());
  return alive;
}

std::size_t most_alive_bytes(const std::vector<Lifetime>& lifetimes) {
  const std::vector<std::size_t> alive = alive_bytes(lifetimes);
  return alive.empty() ? 0 : std::ranges::max(alive);
}

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    if (lifetimes[i].bytes != 0) order.push_back(i);  // few kernels have scratch memory
  }
  const auto sort_by = [&](auto&& key) {
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::size_t i) { return key(lifetimes[i]); });
  };
  sort_by([](const Lifetime& one) { return one.bytes; });
  MemoryPlan best = place(lifetimes, order);
  best.lower_bound_bytes = most_alive_bytes(lifetimes);
  std::vector<std::size_t> tried;
  const auto try_order = [&](auto&& key) {
    if (best.arena_bytes == best.lower_bound_bytes) return;
    tried = order;
    sort_by(key);
    if (order == tried) return;
    MemoryPlan other = place(lifetimes, order);
    if (other.arena_bytes >= best.arena_bytes) return;
    best.arena_bytes = other.arena_bytes;
    best.offsets = std::move(other.offsets);
  };
  try_order([](const Lifetime& one) { return one.last - one.first; });
  try_order([](const Lifetime& one) {
    return static_cast<double>(one.bytes) * (one.last - one.first + 1);
  });
  return best;
}

}  // namespace graft
