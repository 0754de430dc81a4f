#include <algorithm>

#include "core/base/machine.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/move/sequence_layout.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Lengths known only in the run are clamped to the number of steps.
Kernel make_reverse_sequence(KernelRequest& request) {
  const Shape& shape = request.shape();
  if (shape.size() == 0) return [](const KernelArgs&) {};
  const SequenceLayout by(request);
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      parallel_for(by.samples, kElementwiseGrain / (by.steps * by.inner) + 1,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t b = first; b < last; ++b) {
                       const std::int64_t length =
                           std::clamp<std::int64_t>(args.input<std::int64_t>(1)[b], 0, by.steps);
                       for (std::int64_t t = 0; t < by.steps; ++t) {
                         const std::int64_t from = t < length ? length - 1 - t : t;
                         std::copy_n(args.input<T>(0) + by.row(b, from) * by.inner, by.inner,
                                     args.output<T>() + by.row(b, t) * by.inner);
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
