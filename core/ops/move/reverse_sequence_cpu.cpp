#include <algorithm>

#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Lengths known only in the run are clamped to the number of steps.
Kernel make_reverse_sequence(KernelRequest& request) {
  const Shape& shape = request.shape();
  if (shape.size() == 0) return [](const KernelArgs&) {};
  const bool batch_first = request.attributes().get_int("batch_axis", 1) == 0;
  const std::int64_t samples = shape[batch_first ? 0 : 1];
  const std::int64_t steps = shape[batch_first ? 1 : 0];
  const std::int64_t inner = shape.size(2, shape.rank());
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      const auto row = [=](std::int64_t sample, std::int64_t step) {
        return (batch_first ? sample * steps + step : step * samples + sample) * inner;
      };
      parallel_for(samples, kElementwiseGrain / (steps * inner) + 1,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t b = first; b < last; ++b) {
                       const std::int64_t length =
                           std::clamp<std::int64_t>(args.input<std::int64_t>(1)[b], 0, steps);
                       for (std::int64_t t = 0; t < steps; ++t) {
                         const std::int64_t from = t < length ? length - 1 - t : t;
                         std::copy_n(args.input<T>(0) + row(b, from), inner,
                                     args.output<T>() + row(b, t));
                       }
                     }
                   });
    };
  });
  return kernel;
}

}  // namespace

void register_reverse_sequence_cpu(KernelRegistry& registry) {
  registry.add({.op = "ReverseSequence", .name = "plain", .make = make_reverse_sequence});
}

}  // namespace graft
