#include "core/runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/device/device.h"

namespace graft {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + Device::kAlignment - 1) / Device::kAlignment * Device::kAlignment;
}

std::size_t most_alive(const std::vector<Lifetime>& lifetimes) {
  int last = -1;
  for (const Lifetime& lifetime : lifetimes) last = std::max(last, lifetime.last);
  std::vector<std::size_t> starts(static_cast<std::size_t>(last + 2));
  std::vector<std::size_t> ends(static_cast<std::size_t>(last + 2));
  for (const Lifetime& lifetime : lifetimes) {
    starts[static_cast<std::size_t>(lifetime.first)] += aligned(lifetime.bytes);
    ends[static_cast<std::size_t>(lifetime.last + 1)] += aligned(lifetime.bytes);
  }
  std::size_t alive = 0;
  std::size_t most = 0;
  for (std::size_t step = 0; step < starts.size(); ++step) {
    alive += starts[step];
    alive -= ends[step];
    most = std::max(most, alive);
  }
  return most;
}

struct Placed {
  std::size_t offset;
  std::size_t end;
  int first;
  int last;
};

/// The lowest offset at which `bytes` fit between those that live at the same time. `placed` is
/// sorted by offset.
std::size_t lowest_fit(const std::vector<Placed>& placed, const Lifetime& lifetime) {
  std::size_t offset = 0;
  for (const Placed& other : placed) {
    if (other.last < lifetime.first || lifetime.last < other.first) continue;
    if (other.offset >= offset + aligned(lifetime.bytes)) break;
    offset = std::max(offset, other.end);
  }
  return offset;
}

/// Places the buffers one after the other, in this order.
MemoryPlan place(const std::vector<Lifetime>& lifetimes, const std::vector<std::size_t>& order) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<Placed> placed;
  for (const std::size_t index : order) {
    const Lifetime& lifetime = lifetimes[index];
    if (lifetime.bytes == 0) continue;
    const std::size_t offset = lowest_fit(placed, lifetime);
    const Placed entry{offset, offset + aligned(lifetime.bytes), lifetime.first, lifetime.last};
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::offset), entry);
    plan.offsets[index] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, entry.end);
  }
  return plan;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto sort_by = [&](auto&& key) {
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::size_t i) { return key(lifetimes[i]); });
  };
  sort_by([](const Lifetime& one) { return one.bytes; });
  MemoryPlan best = place(lifetimes, order);
  best.lower_bound_bytes = most_alive(lifetimes);
  const auto try_order = [&] {
    if (best.arena_bytes == best.lower_bound_bytes) return;
    MemoryPlan other = place(lifetimes, order);
    if (other.arena_bytes >= best.arena_bytes) return;
    best.arena_bytes = other.arena_bytes;
    best.offsets = std::move(other.offsets);
  };
  sort_by([](const Lifetime& one) { return one.last - one.first; });
  try_order();
  sort_by([](const Lifetime& one) {
    return static_cast<double>(one.bytes) * (one.last - one.first + 1);
  });
  try_order();
  return best;
}

}  // namespace graft
