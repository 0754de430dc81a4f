#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/device/device.h"
#include "core/device/overlap.h"

namespace graft {

/// One card, or the emulated one. Work runs on one stream in the order in which it is given, and
/// uploads on another, while the caller goes on; what fails there, the next call that waits says.
class CudaDevice final : public Device, public Overlap {
 public:
  /// Throws Error{device} if the card cannot be used, or is older than the kernels.
  explicit CudaDevice(int index);

  DeviceKind kind() const override { return DeviceKind::cuda; }
  /// "cuda:0"; "cuda:emulated".
  std::string name() const override { return name_; }
  /// Card, memory, compute capability, and the versions of the libraries, which are loaded for it.
  std::string description() const override;

  void* allocate(std::size_t bytes) override;
  void deallocate(void* memory) noexcept override;
  void copy_from_host(void* target, const void* source, std::size_t bytes) override;
  void copy_to_host(void* target, const void* source, std::size_t bytes) override;
  void synchronize() override;
  void settle() noexcept override;
  void note_failure(std::string what) override;
  void copy_async(void* target, const void* source, std::size_t bytes) override;
  void fill(void* target, int byte, std::size_t bytes) override;
  void call_host(void (*function)(void*), void* data) override;
  std::shared_ptr<void> allocate_host(std::size_t bytes) override;
  std::unique_ptr<Replay> record(const std::function<void()>& body) override;
  /// The thread that holds it calls CUDA for this card.
  std::unique_lock<std::recursive_mutex> take_turn() override;
  std::unique_ptr<Event> make_event() override;
  void upload(void* target, const void* source, std::size_t bytes) override;

  std::size_t free_bytes();

  cudaStream_t stream() { return stream(Stream::work); }
  /// Made when first asked for: a card that nobody works with keeps its memory. Throws
  /// Error{device}.
  cudaStream_t stream(Stream which);

  /// What those who wait do first: throws what was noted, and what keeps kernels from starting.
  void throw_failure();

 private:
  void check(cudaError_t error, std::string_view what) const;
  void open();

  int index_;
  std::string name_;
  std::string card_;
  std::once_flag opened_;
  cudaStream_t stream_ = nullptr;
  cudaStream_t uploads_ = nullptr;
  std::recursive_mutex mutex_;
  std::mutex failure_mutex_;  // a thread of the driver notes failures too, while another waits
  std::string failure_;
};

/// Kernels get the device they were made for.
CudaDevice& as_cuda(Device& device);

/// What the device is called: by number, but the emulated one by its kind.
std::string cuda_device_name(int index);

}  // namespace graft
