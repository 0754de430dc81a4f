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

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  plan.lower_bound_bytes = most_alive(lifetimes);
  std::vector<Placed> placed;
  for (const std::size_t index : order) {
    const Lifetime& lifetime = lifetimes[index];
    const std::size_t offset = lowest_fit(placed, lifetime);
    const Placed entry{offset, offset + aligned(lifetime.bytes), lifetime.first, lifetime.last};
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::offset), entry);
    plan.offsets[index] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, entry.end);
  }
  return plan;
}

}  // namespace graft
