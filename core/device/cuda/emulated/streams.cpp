// Streams, events and graphs of the CUDA runtime as queues of functions. Work runs when somebody
// waits for it, on the thread that waits; so host code that reads too early sees old bytes, and a
// buffer that is reused too early gives wrong numbers.
#include "core/device/cuda/emulated/streams.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/device/cuda/emulated/block.h"
#include "core/device/cuda/emulated/emulator.h"
#include "core/device/cuda/emulated/memory.h"
#include "core/device/cuda/emulated/status.h"

namespace {

/// Work, or the wait for an event.
struct Item {
  std::function<void()> work;
  std::shared_ptr<const bool> after = nullptr;

  bool can_run() const { return after == nullptr || *after; }
};

}  // namespace

struct CUgraph_st {
  std::vector<Item> items;
};
struct CUgraphExec_st {
  std::vector<Item> items;
};
struct CUstream_st {
  std::deque<Item> queue;
  std::unique_ptr<CUgraph_st> capture;
};
struct CUevent_st {
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);
  CUstream_st* stream = nullptr;  // in which it was recorded last
};

namespace graft::emulated {
namespace {

struct Streams {
  std::vector<CUstream_st*> all;
  std::uint64_t seed = 0;
  std::mt19937_64 random;
  std::string fault;
  std::size_t waits = 0;
  std::size_t copies = 0;
};
Streams& streams() {
  static Streams& instance = *new Streams;
  return instance;
}

void give(cudaStream_t stream, Item item) {
  if (stream->capture) {
    stream->capture->items.push_back(std::move(item));
  } else {
    stream->queue.push_back(std::move(item));
  }
}

bool can_run(const CUstream_st* stream) {
  return !stream->queue.empty() && stream->queue.front().can_run();
}

/// Whose work runs next while `wanted` is waited for; null if nobody can go on.
CUstream_st* choose(CUstream_st* wanted) {
  Streams& s = streams();
  std::vector<CUstream_st*> able;
  std::ranges::copy_if(s.all, std::back_inserter(able), can_run);
  if (able.empty()) return nullptr;
  if (s.seed != 0) return able[s.random() % able.size()];
  return can_run(wanted) ? wanted : able.front();
}

cudaError_t run_until(CUstream_st* wanted, const std::function<bool()>& is_reached) {
  const Visit visit;
  try {
    while (!is_reached()) {
      CUstream_st* const stream = choose(wanted);
      if (stream == nullptr) throw Fault("streams wait for an event that nobody records");
      const Item item = std::move(stream->queue.front());
      stream->queue.pop_front();
      if (item.work) item.work();
    }
    check_ends();
  } catch (const Fault& fault) {
    streams().fault = fault.what();
    for (CUstream_st* stream : streams().all) stream->queue.clear();
    return report(cudaErrorLaunchFailure);
  }
  return cudaSuccess;
}

bool is_capturing() {
  return std::ranges::any_of(streams().all, [](CUstream_st* s) { return s->capture != nullptr; });
}

}  // namespace

void set_stream_order(std::uint64_t seed) {
  streams().seed = seed;
  streams().random.seed(seed);
}

std::size_t stream_waits() {
  return streams().waits;
}

std::size_t copies_over_the_bus() {
  return streams().copies;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  give(stream, {std::move(work)});
}

const std::string& last_fault() {
  return streams().fault;
}

bool forbids_waiting() {
  return is_capturing();
}

cudaError_t run_all() {
  for (CUstream_st* stream : streams().all) {
    const cudaError_t error = run_until(stream, [&] { return stream->queue.empty(); });
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace graft::emulated

using namespace graft::emulated;  // NOLINT: what follows is the interface of libcudart

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Guard guard;
  *stream = new CUstream_st;
  streams().all.push_back(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Guard guard;
  const cudaError_t error = run_until(stream, [&] { return stream->queue.empty(); });
  std::erase(streams().all, stream);
  delete stream;
  return error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Guard guard;
  if (is_capturing()) return report(cudaErrorStreamCaptureUnsupported);
  ++streams().waits;
  return run_until(stream, [&] { return stream->queue.empty(); });
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const Guard guard;
  enqueue(stream, [=] {
    if (!is_on_device(target) || !is_on_device(source)) ++streams().copies;
    std::memcpy(target, source, bytes);
  });
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  const Guard guard;
  enqueue(stream, [=] { std::memset(target, value, bytes); });
  return cudaSuccess;
}

/// The function runs as the host does: device memory is out of its reach.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  const Guard guard;
  enqueue(stream, [=] {
    const Leave leave;
    function(data);
  });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Guard guard;
  if (stream->capture) return report(cudaErrorStreamCaptureUnsupported);
  const auto reached = std::make_shared<bool>(false);
  event->reached = reached;
  event->stream = stream;
  enqueue(stream, [reached] { *reached = true; });
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Guard guard;
  if (stream->capture) return report(cudaErrorStreamCaptureUnsupported);
  give(stream, {nullptr, event->reached});
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Guard guard;
  if (is_capturing()) return report(cudaErrorStreamCaptureUnsupported);
  return run_until(event->stream, [&] { return *event->reached; });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Guard guard;
  if (is_capturing()) return report(cudaErrorIllegalState);
  stream->capture = std::make_unique<CUgraph_st>();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Guard guard;
  *graph = nullptr;
  if (!stream->capture) return report(cudaErrorIllegalState);
  *graph = stream->capture.release();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* result, cudaGraph_t graph, unsigned long long) {
  *result = new CUgraphExec_st{graph->items};
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const Guard guard;
  for (const Item& item : graph->items) give(stream, item);
  return cudaSuccess;
}

}  // extern "C"
