#include "core/runtime/dead_memory.h"

#include "core/base/at.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GRAFT_UNDER_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define GRAFT_UNDER_ASAN
#endif
#if defined(GRAFT_UNDER_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace graft {
namespace {

constexpr int kNanBits = 0xff;

void forbid([[maybe_unused]] Device& device, [[maybe_unused]] void* memory,
            [[maybe_unused]] std::size_t bytes) {
#if defined(GRAFT_UNDER_ASAN)
  if (device.kind() == DeviceKind::cpu) __asan_poison_memory_region(memory, bytes);
#endif
}

void allow([[maybe_unused]] Device& device, [[maybe_unused]] void* memory,
           [[maybe_unused]] std::size_t bytes) {
#if defined(GRAFT_UNDER_ASAN)
  if (device.kind() == DeviceKind::cpu) __asan_unpoison_memory_region(memory, bytes);
#endif
}

}  // namespace

DeadMemory::DeadMemory(const Arena& layout, const Tensor& arena, Device& device,
                       const std::vector<std::size_t>& workspace_bytes)
    : arena_(arena), device_(device), changes_(workspace_bytes.size()) {
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const Range scratch{at(layout.workspace_offsets, i), workspace_bytes[i]};
    changes_[i] = {{scratch}, {scratch}};
  }
  const std::vector<Storage>& storages = layout.storage.storages;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    const Storage& one = storages[i];
    if (one.place != Storage::Place::arena) continue;
    const Range range{at(layout.storage_offsets, i), one.bytes};
    at(changes_, one.first).born.push_back(range);
    if (one.last < static_cast<int>(changes_.size())) at(changes_, one.last).dead.push_back(range);
  }
}

DeadMemory::Run::Run(const DeadMemory& memory) : memory_(memory) {
  memory.device_.fill(memory.arena_.data(), kNanBits, memory.arena_.bytes());
  forbid(memory.device_, memory.arena_.data(), memory.arena_.bytes());
}

DeadMemory::Run::~Run() {
  allow(memory_.device_, memory_.arena_.data(), memory_.arena_.bytes());
}

void DeadMemory::Run::before(std::size_t step) const {
  for (const Range& range : memory_.changes_[step].born) {
    allow(memory_.device_, memory_.at_offset(range.offset), range.bytes);
  }
}

void DeadMemory::Run::after(std::size_t step) const {
  for (const Range& range : memory_.changes_[step].dead) {
    memory_.device_.fill(memory_.at_offset(range.offset), kNanBits, range.bytes);
    forbid(memory_.device_, memory_.at_offset(range.offset), range.bytes);
  }
}

}  // namespace graft
