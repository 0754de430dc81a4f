// The rest of the CUDA runtime that Graft calls: the device, its memory, errors.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/device/cuda/emulated/emulator.h"
#include "core/device/cuda/emulated/memory.h"
#include "core/device/cuda/emulated/status.h"
#include "core/device/cuda/emulated/streams.h"

namespace graft::emulated {
namespace {

std::recursive_mutex& mutex() {
  static std::recursive_mutex& instance = *new std::recursive_mutex;
  return instance;
}
cudaError_t last_error = cudaSuccess;
std::size_t allocated = 0;

}  // namespace

std::size_t allocations() {
  return allocated;
}

Guard::Guard() : lock_(mutex()) {}

cudaError_t report(cudaError_t error) {
  last_error = error;
  return error;
}

}  // namespace graft::emulated

using namespace graft::emulated;  // NOLINT: what follows is the interface of libcudart

extern "C" {

cudaError_t cudaGetLastError() {
  const Guard guard;
  return std::exchange(last_error, cudaSuccess);
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorStreamCaptureUnsupported:
      return "not permitted while a stream is captured";
    case cudaErrorIllegalState:
      return "not possible in this state";
    case cudaErrorLaunchFailure:
      return last_fault().c_str();
    default:
      return "another error";
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : report(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return report(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "emulated on the CPU");
  properties->major = 9;
  properties->minor = 0;
  properties->multiProcessorCount = 4;
  properties->totalGlobalMem = all_device_bytes();
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Guard guard;
  ++allocated;
  *memory = nullptr;
  if (forbids_waiting()) return report(cudaErrorStreamCaptureUnsupported);
  *memory = allocate_on_device(bytes);
  return *memory == nullptr ? report(cudaErrorMemoryAllocation) : cudaSuccess;
}

/// Waits for nothing: a card's may, and need not.
cudaError_t cudaFree(void* memory) {
  const Guard guard;
  if (memory == nullptr) return cudaSuccess;
  if (forbids_waiting()) return report(cudaErrorStreamCaptureUnsupported);
  return free_on_device(memory) ? cudaSuccess : report(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* all_bytes) {
  const Guard guard;
  *free_bytes = free_device_bytes();
  *all_bytes = all_device_bytes();
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const Guard guard;
  *attributes = {};
  attributes->type = is_on_device(address) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const Guard guard;
  ++allocated;
  constexpr std::size_t kPage = 4096;
  *memory =
      std::aligned_alloc(kPage, (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage);
  return *memory == nullptr ? report(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

}  // extern "C"
