#include <limits>

#include "core/ops/elementwise_internal.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// The bounds of a call; a left-out one bounds nothing.
template <class T>
class Bounds {
 public:
  Bounds(const KernelRequest& request, int first)
      : low_(request.has_input(first) ? first : -1),
        high_(request.has_input(first + 1) ? first + 1 : -1) {}

  T low(const KernelArgs& args) const {
    using Limits = std::numeric_limits<T>;
    if (low_ >= 0) return *args.input<T>(low_);
    return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
  }
  T high(const KernelArgs& args) const {
    using Limits = std::numeric_limits<T>;
    if (high_ >= 0) return *args.input<T>(high_);
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }

 private:
  int low_;
  int high_;
};

/// Min(max, Max(x, min)): max where min > max. NaN stays NaN.
template <class T>
Kernel clip_kernel(const KernelRequest& request) {
  const Bounds<T> bounds(request, 1);
  return [bounds, size = request.output().shape.size()](const KernelArgs& args) {
    const T low = bounds.low(args);
    const T high = bounds.high(args);
    parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
      const auto clip = [low, high](T x) {
        const T above = x < low ? low : x;
        return above > high ? high : above;
      };
      detail::apply_run(last - first, args.output<T>() + first, clip,
                        detail::Operand<T, true>{args.input<T>(0) + first});
    });
  };
}

template <class T>
Kernel clip_grad_kernel(const KernelRequest& request) {
  const Bounds<T> bounds(request, 2);
  return [bounds, size = request.output().shape.size()](const KernelArgs& args) {
    const T low = bounds.low(args);
    const T high = bounds.high(args);
    parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
      const auto pass = [low, high](T x, T dy) { return (x >= low) & (x <= high) ? dy : T{0}; };
      detail::apply_run(last - first, args.output<T>() + first, pass,
                        detail::Operand<T, true>{args.input<T>(0) + first},
                        detail::Operand<T, true>{args.input<T>(1) + first});
    });
  };
}

Kernel make_clip(KernelRequest& request) {
  Kernel kernel;
  visit_dtype(NumericTypes{}, request.dtype(),
              [&]<class T>() { kernel = clip_kernel<T>(request); });
  return kernel;
}

Kernel make_clip_grad(KernelRequest& request) {
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(),
              [&]<class T>() { kernel = clip_grad_kernel<T>(request); });
  return kernel;
}

}  // namespace

void register_clip_cpu(KernelRegistry& registry) {
  registry.add({.op = "Clip", .name = "plain", .make = make_clip});
  registry.add(
      {.op = "ClipGrad", .domain = kInternalDomain, .name = "plain", .make = make_clip_grad});
}

}  // namespace graft
