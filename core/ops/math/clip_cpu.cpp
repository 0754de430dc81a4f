#include <limits>

#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// The bound that is operand `index`, or `none` when that is left out.
template <class T>
T bound(std::span<const RunOperand> x, std::size_t index, T none) {
  const bool is_given = index < x.size() && x[index].elements != nullptr;
  return is_given ? *static_cast<const T*>(x[index].elements) : none;
}
template <class T>
T lower(std::span<const RunOperand> x, std::size_t index) {
  using Limits = std::numeric_limits<T>;
  return bound(x, index,
               Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest());
}
template <class T>
T upper(std::span<const RunOperand> x, std::size_t index) {
  using Limits = std::numeric_limits<T>;
  return bound(x, index, Limits::has_infinity ? Limits::infinity() : Limits::max());
}

/// Min(max, Max(x, min)): max where min > max. NaN stays NaN.
template <class T>
void clip_run(std::int64_t count, std::span<const RunOperand> x, void* y) {
  const T low = lower<T>(x, 1);
  const T high = upper<T>(x, 2);
  apply_to_run<T, T>(count, x, y, [low, high](T value) {
    const T above = value < low ? low : value;
    return above > high ? high : above;
  });
}

template <class T>
void clip_grad_run(std::int64_t count, std::span<const RunOperand> x, void* y) {
  const T low = lower<T>(x, 2);
  const T high = upper<T>(x, 3);
  apply_to_run<T, T, T>(count, x, y, [low, high](T value, T dy) {
    return (value >= low) & (value <= high) ? dy : T{0};
  });
}

RunFunction make_clip(const KernelRequest& request) {
  RunFunction run;
  visit_kernel_dtype(NumericTypes{}, request.dtype(), [&]<class T>() { run = clip_run<T>; });
  return run;
}

RunFunction make_clip_grad(const KernelRequest& request) {
  RunFunction run;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() { run = clip_grad_run<T>; });
  return run;
}

}  // namespace

void register_clip_cpu(KernelRegistry& registry) {
  registry.add({.op = "Clip", .name = "plain", .make_run = make_clip});
  registry.add(
      {.op = "ClipGrad", .domain = kInternalDomain, .name = "plain", .make_run = make_clip_grad});
}

}  // namespace graft
