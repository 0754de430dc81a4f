#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/device/device.h"

namespace graft {

/// Work that was recorded once, to be given to its device again and again at the cost of one call.
/// Addresses are those of the recording; what lies there may change.
class Replay {
 public:
  /// Gives it to the device; does not wait.
  void start() const;

 private:
  friend class CudaDevice;
  struct Recorded;
  explicit Replay(std::shared_ptr<const Recorded> recorded) : recorded_(std::move(recorded)) {}
  std::shared_ptr<const Recorded> recorded_;
};

/// One card, or the emulated one. Work runs on one stream in the order in which it is given, while
/// the caller goes on; what fails there, the next call that waits says.
class CudaDevice final : public Device {
 public:
  /// Throws Error{device} if the card cannot be used.
  explicit CudaDevice(int index);

  DeviceKind kind() const override { return DeviceKind::cuda; }
  /// "cuda:0"; "cuda:emulated".
  std::string name() const override { return name_; }
  std::string description() const override { return description_; }

  void* allocate(std::size_t bytes) override;
  void deallocate(void* memory) noexcept override;
  void copy_from_host(void* target, const void* source, std::size_t bytes) override;
  void copy_to_host(void* target, const void* source, std::size_t bytes) override;
  void synchronize() override;

  /// Copies in the order of the stream, between any two memories; host memory comes from
  /// `allocate_host` and stays as it is until the copy is done.
  void copy_async(void* target, const void* source, std::size_t bytes);
  /// Sets every byte, in the order of the stream.
  void fill(void* target, int byte, std::size_t bytes);

  /// Host memory that the device reads and writes while the CPU goes on. Throws Error{memory}.
  std::shared_ptr<void> allocate_host(std::size_t bytes);
  std::size_t free_bytes() const;

  /// What `body` gives to the device, which does not run now. `body` neither waits nor allocates;
  /// what it throws leaves nothing recorded. Throws Error{device} if it cannot be recorded.
  Replay record(const std::function<void()>& body);

  cudaStream_t stream() const { return stream_; }

 private:
  void use() const;
  void check(cudaError_t error, std::string_view what) const;

  int index_;
  std::string name_;
  std::string description_;
  cudaStream_t stream_ = nullptr;
};

/// Kernels get the device they were made for.
CudaDevice& as_cuda(Device& device);

/// What the device is called: by number, but the emulated one by its kind.
std::string cuda_device_name(int index);

}  // namespace graft
