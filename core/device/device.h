#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

enum class DeviceKind { cpu, cuda };

/// The kind as a word: "cpu", "cuda".
std::string_view name(DeviceKind kind);

/// A place that holds memory and runs kernels. Devices live until the process ends.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual DeviceKind kind() const = 0;
  /// The name that `device()` takes: "cpu".
  virtual std::string name() const = 0;
  /// One line for a person: model, cores or memory.
  virtual std::string description() const = 0;

  /// Memory aligned to kAlignment, not initialised. Throws Error{memory} if there is not enough.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* memory) noexcept = 0;

  /// Copies between host memory and this device; returns when the copy is done.
  virtual void copy_from_host(void* target, const void* source, std::size_t bytes) = 0;
  virtual void copy_to_host(void* target, const void* source, std::size_t bytes) = 0;
  /// Waits for all work given to this device.
  virtual void synchronize() = 0;

  static constexpr std::size_t kAlignment = 64;
};

/// The CPU, which is always there.
Device& cpu();

/// All devices of this machine that this build has kernels for, the CPU first.
const std::vector<Device*>& devices();

/// The device of that name; "auto" is the fastest that plans run on, which is the CPU.
/// Throws Error{device} for another name; the message lists the valid ones.
Device& device(std::string_view name);

}  // namespace graft
