#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/device/device.h"

namespace graft {
namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

/// Large blocks ask for huge pages: an arena of 4 KiB pages is more than the processor's address
/// translation holds at a time, and every pass over memory waits for it. Only whole huge pages of
/// the block become such, so it does not grow. Where the system gives none, nothing changes.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t alignment_of(std::size_t bytes) {
  return bytes < 2 * kHugePage ? Device::kAlignment : kHugePage;
}

void ask_for_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (alignment_of(bytes) != kHugePage) return;
  madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
}

class CpuDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::cpu; }
  std::string name() const override { return "cpu"; }
  std::string description() const override {
    return text(processor_name(), ", ", thread_count(), " threads");
  }

  void* allocate(std::size_t bytes) override {
    const std::size_t alignment = alignment_of(bytes);
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* memory =
        rounded < bytes ? nullptr : std::aligned_alloc(alignment, std::max(rounded, alignment));
    if (memory == nullptr) fail(ErrorKind::memory, "cpu: cannot allocate ", bytes, " bytes");
    ask_for_huge_pages(memory, bytes);
    return memory;
  }
  void deallocate(void* memory) noexcept override { std::free(memory); }

  void copy_from_host(void* target, const void* source, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(target, source, bytes);
  }
  void copy_to_host(void* target, const void* source, std::size_t bytes) override {
    copy_from_host(target, source, bytes);
  }
  void synchronize() override {}
};

}  // namespace

Device& cpu() {
  static CpuDevice& device = *new CpuDevice;  // not destroyed: tensors in statics may outlive it
  return device;
}

}  // namespace graft
