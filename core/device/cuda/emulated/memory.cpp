#include "core/device/cuda/emulated/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "core/base/error.h"
#include "core/device/cuda/emulated/block.h"
#include "core/device/cuda/emulated/emulator.h"
#include "core/device/cuda/emulated/sanitizer.h"

namespace graft::emulated {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAlignment = 256;  // what cudaMalloc promises
constexpr unsigned char kUnwritten = 0xff;
constexpr unsigned char kBehind = 0xa5;

std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

struct Allocation {
  char* mapped = nullptr;
  std::size_t mapped_bytes = 0;  ///< without the page behind
  std::size_t bytes = 0;
};

struct Memory {
  std::map<char*, Allocation> allocations;
  std::size_t limit = std::size_t{8} << 30;
  std::size_t used = 0;
  int visits = 0;
};
Memory& memory() {
  static Memory& instance = *new Memory;
  return instance;
}

void set_access(int access) {
  for (const auto& [at, one] : memory().allocations) mprotect(one.mapped, one.mapped_bytes, access);
}

}  // namespace

void set_memory_limit(std::size_t bytes) {
  memory().limit = bytes;
}
std::size_t free_device_bytes() {
  return memory().limit - std::min(memory().used, memory().limit);
}
std::size_t all_device_bytes() {
  return memory().limit;
}

void* allocate_on_device(std::size_t bytes) {
  Memory& m = memory();
  if (bytes > m.limit) return nullptr;
  const std::size_t shown = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  const std::size_t mapped_bytes = round_up(shown, kPage);
  if (mapped_bytes > free_device_bytes()) return nullptr;
  void* const mapped = mmap(nullptr, mapped_bytes + kPage, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const at = static_cast<char*>(mapped) + (mapped_bytes - shown);
  m.allocations[at] = {static_cast<char*>(mapped), mapped_bytes, bytes};
  m.used += mapped_bytes;
  const Visit visit;
  std::memset(at, kUnwritten, bytes);
  std::memset(at + bytes, kBehind, shown - bytes);
  poison(at + bytes, shown - bytes);
  return at;
}

bool free_on_device(void* address) {
  Memory& m = memory();
  const auto found = m.allocations.find(static_cast<char*>(address));
  if (found == m.allocations.end()) return false;
  const Allocation& one = found->second;
  unpoison(one.mapped, one.mapped_bytes);
  munmap(one.mapped, one.mapped_bytes + kPage);
  m.used -= one.mapped_bytes;
  m.allocations.erase(found);
  return true;
}

bool is_on_device(const void* address) {
  const auto& all = memory().allocations;
  auto* const at = static_cast<char*>(const_cast<void*>(address));
  const auto behind = all.upper_bound(at);
  if (behind == all.begin()) return false;
  const auto& [start, one] = *std::prev(behind);
  return at < start + one.bytes;
}

void check_ends() {
  for (const auto& [at, one] : memory().allocations) {
    char* const end = one.mapped + one.mapped_bytes;
    char* const behind = at + one.bytes;
    unpoison(behind, static_cast<std::size_t>(end - behind));
    const bool intact = std::all_of(
        behind, end, [](char byte) { return static_cast<unsigned char>(byte) == kBehind; });
    if (!intact) std::memset(behind, kBehind, static_cast<std::size_t>(end - behind));
    poison(behind, static_cast<std::size_t>(end - behind));
    if (!intact)
      throw Fault(text("a write behind the end of an allocation of ", one.bytes, " bytes"));
  }
}

Visit::Visit() {
  ++memory().visits;
  set_access(PROT_READ | PROT_WRITE);
}

Visit::~Visit() {
  if (--memory().visits == 0) set_access(PROT_NONE);
}

Leave::Leave() {
  set_access(PROT_NONE);
}

Leave::~Leave() {
  set_access(PROT_READ | PROT_WRITE);
}

}  // namespace graft::emulated
