#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/width.h"

namespace graft {
namespace {

/// Lengths are clamped to the number of steps.
template <class T>
struct ReverseSequence {
  const T* x;
  const std::int64_t* lengths;
  T* y;
  std::int64_t samples;
  std::int64_t steps;
  std::int64_t inner;
  bool batch_first;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / inner;
    const std::int64_t sample = batch_first ? row / steps : row % samples;
    const std::int64_t step = batch_first ? row % steps : row / samples;
    const std::int64_t given = lengths[sample];
    const std::int64_t length = given < steps ? given : steps;
    const std::int64_t from = step < length ? length - 1 - step : step;
    const std::int64_t source = batch_first ? sample * steps + from : from * samples + sample;
    y[i] = x[source * inner + i % inner];
  }
};

Kernel make_reverse_sequence(KernelRequest& request) {
  const Shape& shape = request.shape();
  if (shape.size() == 0) return [](const KernelArgs&) {};
  const bool batch_first = request.attributes().get_int("batch_axis", 1) == 0;
  const std::int64_t samples = shape[batch_first ? 0 : 1];
  const std::int64_t steps = shape[batch_first ? 1 : 0];
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    kernel = [=, inner = shape.size(2, shape.rank()), size = shape.size(),
              stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      start_items(ReverseSequence<T>{args.input<T>(0), args.input<std::int64_t>(1),
                                     args.output<T>(), samples, steps, inner, batch_first},
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
