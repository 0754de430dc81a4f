#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/large_pages.h"
#include "core/base/parallel.h"
#include "core/base/system_file.h"
#include "core/base/words.h"
#include "core/device/device.h"

namespace graft {
namespace {

std::string processor_name() {
  const std::string info = read_system_file("/proc/cpuinfo");
  std::string_view lines = info;
  for (std::string_view line; take_line(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return std::string(line.substr(colon + 2));
    }
  }
  return "CPU";
}

void* allocate_aligned(std::size_t bytes) {
  constexpr std::size_t kWorthLargePages = 2 * kLargePageBytes;
  return bytes >= kWorthLargePages ? allocate_large_pages(bytes)
                                   : std::aligned_alloc(Device::kAlignment, bytes);
}

class CpuDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::cpu; }
  std::string name() const override { return "cpu"; }
  std::string description() const override {
    return text(processor_name(), ", ", thread_count(), " threads");
  }

  void* allocate(std::size_t bytes) override {
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory =
        rounded < bytes ? nullptr : allocate_aligned(rounded == 0 ? kAlignment : rounded);
    if (memory == nullptr) fail(ErrorKind::memory, "cpu: cannot allocate ", bytes, " bytes");
    return memory;
  }
  void deallocate(void* memory) noexcept override { std::free(memory); }

  void copy_from_host(void* target, const void* source, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(target, source, bytes);
  }
  void copy_to_host(void* target, const void* source, std::size_t bytes) override {
    copy_from_host(target, source, bytes);
  }
  void copy_async(void* target, const void* source, std::size_t bytes) override {
    copy_from_host(target, source, bytes);
  }
  void fill(void* target, int byte, std::size_t bytes) override {
    if (bytes > 0) std::memset(target, byte, bytes);
  }
  void call_host(void (*function)(void*), void* data) override { function(data); }
  void synchronize() override {}
  void settle() noexcept override {}
  void note_failure(std::string what) override { fail(ErrorKind::device, "cpu: ", what); }

  std::shared_ptr<void> allocate_host(std::size_t bytes) override {
    return {allocate(bytes), [](void* own) { std::free(own); }};
  }
  std::unique_ptr<Replay> record(const std::function<void()>& /*body*/) override { return nullptr; }
  std::unique_lock<std::recursive_mutex> take_turn() override { return {}; }
};

}  // namespace

Device& cpu() {
  static CpuDevice& device = *new CpuDevice;  // not destroyed: tensors in statics may outlive it
  return device;
}

}  // namespace graft
