#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

#include "core/ops/broadcast_internal.h"
#include "core/ops/kernel.h"

namespace graft {

template <class T>
using ArrayMap = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using ConstArrayMap = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

inline constexpr std::int64_t kElementwiseGrain = 16384;

/// y = function(x), element by element. `function` maps an Eigen array expression of T to one of R.
template <class T, class R = T, class Function>
Kernel unary_kernel(const KernelRequest& request, Function function) {
  const std::int64_t size = request.output().shape.size();
  return [size, function](const KernelArgs& args) {
    parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
      const ConstArrayMap<T> x(args.input<T>(0) + first, last - first);
      ArrayMap<R>(args.output<R>() + first, last - first) = function(x);
    });
  };
}

/// y = function(a, b) with broadcasting, on Eigen array expressions.
template <class T, class R = T, class Function>
Kernel binary_kernel(const KernelRequest& request, Function function) {
  const BroadcastLoop<2> loop(request.output().shape, {request.shape(0), request.shape(1)});
  return [loop, function](const KernelArgs& args) {
    using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
    // A single run is cut into pieces so that threads share it.
    const std::int64_t inner = loop.inner();
    const std::int64_t grain = loop.outer() > 1 ? inner : kElementwiseGrain;
    loop.for_each_run([&](std::int64_t offset, const std::array<std::int64_t, 2>& from) {
      parallel_for(inner, grain, [&](std::int64_t first, std::int64_t last) {
        const std::int64_t count = last - first;
        const T* const a = args.input<T>(0) + from[0] + first * loop.inner_step(0);
        const T* const b = args.input<T>(1) + from[1] + first * loop.inner_step(1);
        ArrayMap<R> y(args.output<R>() + offset + first, count);
        if (loop.inner_step(0) == 0 && loop.inner_step(1) == 0) {
          y = function(Array::Constant(count, *a), Array::Constant(count, *b));
        } else if (loop.inner_step(0) == 0) {
          y = function(Array::Constant(count, *a), ConstArrayMap<T>(b, count));
        } else if (loop.inner_step(1) == 0) {
          y = function(ConstArrayMap<T>(a, count), Array::Constant(count, *b));
        } else {
          y = function(ConstArrayMap<T>(a, count), ConstArrayMap<T>(b, count));
        }
      });
    });
  };
}

/// Makes the unary kernel for the element type of input 0; empty for a type outside `types`.
template <class Types, class Function>
Kernel dispatch_unary(Types types, const KernelRequest& request, Function function) {
  Kernel kernel;
  visit_dtype(types, request.dtype(),
              [&]<class T>() { kernel = unary_kernel<T>(request, function); });
  return kernel;
}

template <class Types, class Function>
Kernel dispatch_binary(Types types, const KernelRequest& request, Function function) {
  Kernel kernel;
  visit_dtype(types, request.dtype(),
              [&]<class T>() { kernel = binary_kernel<T>(request, function); });
  return kernel;
}

/// A comparison: bool result.
template <class Types, class Function>
Kernel dispatch_compare(Types types, const KernelRequest& request, Function function) {
  Kernel kernel;
  visit_dtype(types, request.dtype(),
              [&]<class T>() { kernel = binary_kernel<T, bool>(request, function); });
  return kernel;
}

}  // namespace graft
