#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

enum class DeviceKind { cpu, cuda };

/// The kind as a word: "cpu", "cuda".
std::string_view name(DeviceKind kind);

/// Work that was recorded once, to be given to its device again and again at the cost of one call.
/// Addresses are those of the recording; what lies there may change.
class Replay {
 public:
  virtual ~Replay() = default;
  Replay() = default;
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Gives it to the device; does not wait.
  virtual void start() = 0;
};

/// What becomes of an op for which a device has no kernel.
enum class Fallback {
  none,  ///< it is an error that lists all such ops
  cpu,   ///< it runs on the CPU, its operands are copied there and back
};

/// A place that holds memory and runs kernels. Devices live until the process ends. Kernels,
/// `copy_async`, `fill` and `call_host` are done one after the other in the order in which they are
/// given; the CPU does them at once, others may still be at it when the call returns.
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
  /// Waits for all work given to this device; throws what went wrong with it.
  virtual void synchronize() = 0;
  /// The same where nothing may be thrown: what went wrong, the next `synchronize` throws.
  virtual void settle() noexcept = 0;
  /// For work that fails where nothing may be thrown: the next `synchronize` throws
  /// Error{device} with it.
  virtual void note_failure(std::string what) = 0;

  /// Copies within this device, or between it and host memory from `allocate_host`, which stays as
  /// it is until the copy is done.
  virtual void copy_async(void* target, const void* source, std::size_t bytes) = 0;
  /// Sets every byte.
  virtual void fill(void* target, int byte, std::size_t bytes) = 0;
  /// Calls function(data) on the host, where it gives no work to a device.
  virtual void call_host(void (*function)(void*), void* data) = 0;

  /// Host memory that the device reads and writes while the CPU goes on; given back when the device
  /// is done with what it was given. Throws Error{memory}.
  virtual std::shared_ptr<void> allocate_host(std::size_t bytes) = 0;

  /// Records what `body` gives to the device, which does not run now. `body` neither waits nor
  /// allocates; what it throws leaves nothing recorded. Null on a device where that saves nothing,
  /// and `body` is not called. Throws Error{device} if it cannot be recorded.
  virtual std::unique_ptr<Replay> record(const std::function<void()>& body) = 0;
  /// Whoever gives work from several threads holds this meanwhile: what one records must not
  /// contain the work of another.
  virtual std::unique_lock<std::recursive_mutex> take_turn() = 0;

  static constexpr std::size_t kAlignment = 64;
};

/// The CPU, which is always there.
Device& cpu();

/// All devices of this machine that this build has kernels for, the CPU first.
const std::vector<Device*>& devices();

/// The device of that name; "cuda" is the first card, "auto" the one that the environment names as
/// GRAFT_DEVICE, else the CPU.
/// Throws Error{device} for another name; the message lists the valid ones.
Device& device(std::string_view name);

}  // namespace graft
