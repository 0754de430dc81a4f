#include "core/device/cuda/cuda_device.h"

#include <cassert>
#include <utility>

#include "core/base/error.h"
#include "core/device/cuda/check.h"
#include "core/device/cuda_devices.h"

namespace graft {

struct Replay::Recorded {
  std::string device;
  cudaStream_t stream = nullptr;
  cudaGraphExec_t graph = nullptr;

  Recorded() = default;
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  ~Recorded() {
    cudaStreamSynchronize(stream);  // it may still run
    cudaGraphExecDestroy(graph);
  }
};

void Replay::start() const {
  check_cuda(cudaGraphLaunch(recorded_->graph, recorded_->stream), recorded_->device,
             "replay of recorded work");
}

CudaDevice::CudaDevice(int index) : index_(index), name_(cuda_device_name(index)) {
  use();
  cudaDeviceProp card;
  check(cudaGetDeviceProperties(&card, index), "reading the card's properties");
  description_ = text(static_cast<const char*>(card.name), ", ", card.totalGlobalMem >> 20,
                      " MiB, compute capability ", card.major, ".", card.minor);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
}

void CudaDevice::use() const {
  check(cudaSetDevice(index_), "choosing the device");
}

void CudaDevice::check(cudaError_t error, std::string_view what) const {
  check_cuda(error, name_, what);
}

void* CudaDevice::allocate(std::size_t bytes) {
  use();
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes == 0 ? kAlignment : bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    fail(ErrorKind::memory, name_, ": cannot allocate ", bytes, " bytes, ", free_bytes(),
         " are free");
  }
  check(error, "allocating");
  return memory;
}

void CudaDevice::deallocate(void* memory) noexcept {
  cudaFree(memory);
}

void CudaDevice::copy_from_host(void* target, const void* source, std::size_t bytes) {
  copy_async(target, source, bytes);
  synchronize();
}

void CudaDevice::copy_to_host(void* target, const void* source, std::size_t bytes) {
  copy_async(target, source, bytes);
  synchronize();
}

void CudaDevice::synchronize() {
  use();
  check(cudaGetLastError(), "starting a kernel");
  check(cudaStreamSynchronize(stream_), "waiting for the device");
}

void CudaDevice::copy_async(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  use();
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream_), "copying");
}

void CudaDevice::fill(void* target, int byte, std::size_t bytes) {
  if (bytes == 0) return;
  use();
  check(cudaMemsetAsync(target, byte, bytes, stream_), "filling");
}

std::shared_ptr<void> CudaDevice::allocate_host(std::size_t bytes) {
  use();
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "allocating host memory");
  return {memory, [](void* own) { cudaFreeHost(own); }};
}

std::size_t CudaDevice::free_bytes() const {
  use();
  std::size_t free_now = 0;
  std::size_t all = 0;
  check(cudaMemGetInfo(&free_now, &all), "asking for the free memory");
  return free_now;
}

Replay CudaDevice::record(const std::function<void()>& body) {
  use();
  const auto recorded = std::make_shared<Replay::Recorded>();
  recorded->device = name_;
  recorded->stream = stream_;
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "starting to record");
  cudaGraph_t graph = nullptr;
  try {
    body();
  } catch (...) {
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(stream_, &graph), "recording");
  const cudaError_t error = cudaGraphInstantiate(&recorded->graph, graph, 0);
  cudaGraphDestroy(graph);
  check(error, "preparing what was recorded");
  return Replay(recorded);
}

CudaDevice& as_cuda(Device& device) {
  assert(device.kind() == DeviceKind::cuda);
  return static_cast<CudaDevice&>(device);
}

std::vector<Device*> cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  std::vector<Device*> found;
  for (int i = 0; i < count; ++i) found.push_back(new CudaDevice(i));  // they live as long as we
  return found;
}

}  // namespace graft
