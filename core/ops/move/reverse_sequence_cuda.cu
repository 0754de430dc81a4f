#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/width.h"
#include "core/ops/move/sequence_layout.h"

namespace graft {
namespace {

/// Lengths are clamped to the number of steps.
template <class T>
struct ReverseSequence {
  const T* x;
  const std::int64_t* lengths;
  T* y;
  SequenceLayout by;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / by.inner;
    const std::int64_t sample = by.batch_first ? row / by.steps : row % by.samples;
    const std::int64_t step = by.batch_first ? row % by.steps : row / by.samples;
    const std::int64_t given = lengths[sample];
    const std::int64_t length = given < by.steps ? given : by.steps;
    const std::int64_t from = step < length ? length - 1 - step : step;
    y[i] = x[by.row(sample, from) * by.inner + i % by.inner];
  }
};

Kernel make_reverse_sequence(KernelRequest& request) {
  const Shape& shape = request.shape();
  if (shape.size() == 0) return [](const KernelArgs&) {};
  const SequenceLayout by(request);
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    kernel = [by, size = shape.size(),
              stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      start_items(
          ReverseSequence<T>{args.input<T>(0), args.input<std::int64_t>(1), args.output<T>(), by},
          size, stream);
    };
  });
  return kernel;
}

}  // namespace

void register_reverse_sequence_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "plain", {{"ReverseSequence", make_reverse_sequence}});
}

}  // namespace graft
