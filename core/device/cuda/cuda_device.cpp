#include "core/device/cuda/cuda_device.h"

#include <cassert>
#include <utility>

#include "core/base/error.h"
#include "core/device/cuda/check.h"
#include "core/device/cuda/convolution.h"
#include "core/device/cuda/cublaslt.h"
#include "core/device/cuda_devices.h"

namespace graft {

namespace {

constexpr int kOldestCapability = 75;  // that kernels are compiled for (cmake/GraftCuda.cmake)

class CudaReplay final : public Replay {
 public:
  CudaReplay(CudaDevice& device, cudaGraphExec_t graph) : device_(device), graph_(graph) {}
  ~CudaReplay() override {
    const auto turn = device_.take_turn();
    cudaStreamSynchronize(device_.stream());  // it may still run
    cudaGraphExecDestroy(graph_);
  }

  void start() override {
    const auto turn = device_.take_turn();
    check_cuda(cudaGraphLaunch(graph_, device_.stream()), device_.name(),
               "replay of recorded work");
  }

 private:
  CudaDevice& device_;
  cudaGraphExec_t graph_;
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(CudaDevice& device) : device_(device) {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }

  void set(Stream stream) override {
    const auto turn = device_.take_turn();
    check(cudaEventRecord(event_, device_.stream(stream)), "setting an event");
  }
  void hold(Stream stream) override {
    const auto turn = device_.take_turn();
    check(cudaStreamWaitEvent(device_.stream(stream), event_, 0), "holding a stream");
  }
  void wait() override {
    const auto turn = device_.take_turn();
    device_.throw_failure();
    check(cudaEventSynchronize(event_), "waiting for an event");
  }
  void settle() noexcept override {
    const auto turn = device_.take_turn();
    cudaEventSynchronize(event_);
  }

 private:
  void check(cudaError_t error, std::string_view what) const {
    check_cuda(error, device_.name(), what);
  }

  CudaDevice& device_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace

CudaDevice::CudaDevice(int index) : index_(index), name_(cuda_device_name(index)) {
  cudaDeviceProp card;
  check(cudaGetDeviceProperties(&card, index), "reading the card's properties");
  card_ = text(static_cast<const char*>(card.name), ", ", card.totalGlobalMem >> 20,
               " MiB, compute capability ", card.major, ".", card.minor);
  if (10 * card.major + card.minor < kOldestCapability) {
    fail(ErrorKind::device, name_, ": ", card_, ", wanted at least ", kOldestCapability / 10, ".",
         kOldestCapability % 10);
  }
}

void CudaDevice::open() {
  check(cudaSetDevice(index_), "choosing the device");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  check(cudaStreamCreateWithFlags(&uploads_, cudaStreamNonBlocking), "making a stream");
}

cudaStream_t CudaDevice::stream(Stream which) {
  std::call_once(opened_, [this] { open(); });
  return which == Stream::work ? stream_ : uploads_;
}

void CudaDevice::check(cudaError_t error, std::string_view what) const {
  check_cuda(error, name_, what);
}

std::string CudaDevice::description() const {
  return text(card_, "; ", describe_cublaslt(), "; ", describe_convolution_library());
}

void* CudaDevice::allocate(std::size_t bytes) {
  const auto turn = take_turn();
  // What a kernel before it left is told by who waits, not lost to the memory's own error.
  const cudaError_t pending = cudaGetLastError();
  if (pending != cudaSuccess)
    note_failure(text("starting a kernel: ", cudaGetErrorString(pending)));
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
  const auto turn = take_turn();
  settle();  // cudaFree may wait for what still uses it, and need not
  cudaFree(memory);
}

void CudaDevice::copy_from_host(void* target, const void* source, std::size_t bytes) {
  const auto turn = take_turn();
  copy_async(target, source, bytes);
  synchronize();
}

void CudaDevice::copy_to_host(void* target, const void* source, std::size_t bytes) {
  const auto turn = take_turn();
  copy_async(target, source, bytes);
  synchronize();
}

void CudaDevice::synchronize() {
  const auto turn = take_turn();
  throw_failure();
  check(cudaStreamSynchronize(stream()), "waiting for the device");
  throw_failure();  // what a thread of the driver noted meanwhile
}

void CudaDevice::settle() noexcept {
  const auto turn = take_turn();
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  if (uploads_ != nullptr) cudaStreamSynchronize(uploads_);
}

void CudaDevice::throw_failure() {
  const std::string noted = [this] {
    const std::scoped_lock lock(failure_mutex_);
    return std::exchange(failure_, {});
  }();
  if (!noted.empty()) fail(ErrorKind::device, name_, ": ", noted);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaErrorNoKernelImageForDevice) {
    fail(ErrorKind::device, name_, ": ", card_, ": no kernels were compiled for it; build with ",
         "CMAKE_CUDA_ARCHITECTURES of this capability");
  }
  check(error, "starting a kernel");
}

void CudaDevice::note_failure(std::string what) {
  const std::scoped_lock lock(failure_mutex_);
  if (failure_.empty()) failure_ = std::move(what);
}

void CudaDevice::copy_async(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  const auto turn = take_turn();
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream()), "copying");
}

void CudaDevice::fill(void* target, int byte, std::size_t bytes) {
  if (bytes == 0) return;
  const auto turn = take_turn();
  check(cudaMemsetAsync(target, byte, bytes, stream()), "filling");
}

void CudaDevice::call_host(void (*function)(void*), void* data) {
  const auto turn = take_turn();
  check(cudaLaunchHostFunc(stream(), function, data), "calling the host");
}

std::shared_ptr<void> CudaDevice::allocate_host(std::size_t bytes) {
  const auto turn = take_turn();
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault),
        text("allocating ", bytes, " bytes of host memory"));
  return {memory, [this](void* own) {
            const auto its_turn = take_turn();
            settle();
            cudaFreeHost(own);
          }};
}

std::size_t CudaDevice::free_bytes() {
  const auto turn = take_turn();
  std::size_t free_now = 0;
  std::size_t all = 0;
  check(cudaMemGetInfo(&free_now, &all), "asking for the free memory");
  return free_now;
}

std::unique_ptr<Replay> CudaDevice::record(const std::function<void()>& body) {
  const auto turn = take_turn();
  check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "starting to record");
  cudaGraph_t graph = nullptr;
  try {
    body();
    throw_failure();  // what is missing in the record would be missing in every replay
  } catch (...) {
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(stream_, &graph), "recording");
  cudaGraphExec_t prepared = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&prepared, graph, 0);
  cudaGraphDestroy(graph);
  check(error, "preparing what was recorded");
  return std::make_unique<CudaReplay>(*this, prepared);
}

std::unique_lock<std::recursive_mutex> CudaDevice::take_turn() {
  std::unique_lock turn(mutex_);
  cudaSetDevice(index_);  // what fails here, the call for which it was chosen says
  return turn;
}

std::unique_ptr<Event> CudaDevice::make_event() {
  const auto turn = take_turn();
  return std::make_unique<CudaEvent>(*this);
}

void CudaDevice::upload(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  const auto turn = take_turn();
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream(Stream::uploads)),
        "uploading");
}

CudaDevice& as_cuda(Device& device) {
  assert(device.kind() == DeviceKind::cuda);
  return static_cast<CudaDevice&>(device);
}

namespace {

struct Cards {
  std::vector<Device*> usable;  // they live as long as we
  std::string why_others_are_not;
};

Cards find_cards() {
  Cards cards;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();
    cards.why_others_are_not = text("cuda: ", cudaGetErrorString(error));
    return cards;
  }
  for (int i = 0; i < count; ++i) {
    try {
      cards.usable.push_back(new CudaDevice(i));
    } catch (const Error& refusal) {
      cards.why_others_are_not += (cards.why_others_are_not.empty() ? "" : "; ");
      cards.why_others_are_not += refusal.what();
    }
  }
  return cards;
}

const Cards& cards() {
  static const Cards& found = *new Cards(find_cards());
  return found;
}

}  // namespace

std::vector<Device*> cuda_devices() {
  return cards().usable;
}

std::string why_no_cuda() {
  return cards().why_others_are_not;
}

bool lies_on(const Device& card, const void* memory, std::size_t bytes) {
  const auto byte_lies = [&](std::size_t index) {
    cudaPointerAttributes found;
    check_cuda(cudaPointerGetAttributes(&found, static_cast<const std::byte*>(memory) + index),
               card.name(), "looking at an address");
    const bool is_ours = found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged;
    return is_ours && cuda_device_name(found.device) == card.name();
  };
  return byte_lies(0) && byte_lies(bytes - 1);
}

}  // namespace graft
