#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/ops/broadcast_internal.h"
#include "core/ops/kernel.h"

namespace graft {

template <class T>
using ArrayMap = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using ConstArrayMap = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

/// `x` as a type whose arithmetic wraps round: an unsigned type of at least 32 bits for an integer,
/// itself for a float. Signed overflow, also that of promoted small types, has no value in C++.
template <class T>
auto wrapping(T x) {
  if constexpr (!std::is_integral_v<T>) {
    return x;
  } else if constexpr (sizeof(T) < sizeof(std::uint32_t)) {
    return static_cast<std::uint32_t>(x);
  } else {
    return static_cast<std::make_unsigned_t<T>>(x);
  }
}

namespace detail {

/// One input along a run: its elements, or one element again and again.
template <class T, bool moves>
struct Operand {
  const T* elements;
  T operator[](std::int64_t i) const { return elements[i]; }
};

template <class T>
struct Operand<T, false> {
  explicit Operand(const T* element) : value(*element) {}
  T value;
  T operator[](std::int64_t) const { return value; }
};

template <class T>
struct StridedOperand {
  const T* elements;
  std::int64_t step;
  T operator[](std::int64_t i) const { return elements[i * step]; }
};

/// The output may be one buffer with an input: element i is read before it is written, and no
/// other iteration touches it.
template <class R, class Function, class... Operands>
void apply_run(std::int64_t count, R* y, const Function& function, Operands... x) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(function(x[i]...));
}

/// The same with every input moving, but `still` (if not -1), which repeats one element.
template <int still, class R, class... Ts, class Function, std::size_t... k>
void apply_run(std::int64_t count, R* y, const Function& function, std::index_sequence<k...>,
               const Ts*... x) {
  apply_run(count, y, function, Operand<Ts, static_cast<int>(k) != still>{x}...);
}

}  // namespace detail

/// y = function(x0, x1, ...) with broadcasting, element by element, where input k has elements of
/// type Ts[k] and the output of type R. `first_input`: which of the node's inputs is x0. A function
/// without branches and calls is compiled to vector instructions.
template <class R, class... Ts, class Function>
Kernel broadcast_kernel(const KernelRequest& request, Function function, int first_input = 0) {
  constexpr int kCount = sizeof...(Ts);
  std::array<Shape, kCount> shapes;
  for (int k = 0; k < kCount; ++k) shapes[k] = request.shape(first_input + k);
  return [loop = BroadcastLoop<kCount>(request.output().shape, shapes), function,
          first_input](const KernelArgs& args) {
    constexpr std::make_index_sequence<kCount> kEach;
    int still_count = 0;
    int still = -1;
    for (int k = 0; k < kCount; ++k) {
      if (loop.inner_step(k) != 0) continue;
      ++still_count;
      still = k;
    }
    loop.for_each_run(
        [&](std::int64_t offset, const std::array<std::int64_t, kCount>& from, std::int64_t count) {
          [&]<std::size_t... k>(std::index_sequence<k...>) {
            R* const y = args.output<R>() + offset;
            const std::tuple<const Ts*...> x{args.input<Ts>(first_input + static_cast<int>(k)) +
                                             from[k]...};
            if (still_count == 0) {
              detail::apply_run<-1>(count, y, function, kEach, std::get<k>(x)...);
            } else if (still_count == 1) {
              ((still == static_cast<int>(k) ? detail::apply_run<static_cast<int>(k)>(
                                                   count, y, function, kEach, std::get<k>(x)...)
                                             : void()),
               ...);
            } else {
              detail::apply_run(count, y, function,
                                detail::StridedOperand<Ts>{std::get<k>(x), loop.inner_step(k)}...);
            }
          }
          (kEach);
        });
  };
}

/// y = function(x), element by element.
template <class T, class R = T, class Function>
Kernel unary_kernel(const KernelRequest& request, Function function) {
  const std::int64_t size = request.output().shape.size();
  return [size, function](const KernelArgs& args) {
    parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
      detail::apply_run(last - first, args.output<R>() + first, function,
                        detail::Operand<T, true>{args.input<T>(0) + first});
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

/// The same with a result of type R.
template <class R, class Types, class Function>
Kernel dispatch_unary_to(Types types, const KernelRequest& request, Function function) {
  Kernel kernel;
  visit_dtype(types, request.dtype(),
              [&]<class T>() { kernel = unary_kernel<T, R>(request, function); });
  return kernel;
}

/// Two inputs of one type and a result of the same.
template <class Types, class Function>
Kernel dispatch_binary(Types types, const KernelRequest& request, Function function) {
  Kernel kernel;
  visit_dtype(types, request.dtype(),
              [&]<class T>() { kernel = broadcast_kernel<T, T, T>(request, function); });
  return kernel;
}

/// A comparison: bool result.
template <class Types, class Function>
Kernel dispatch_compare(Types types, const KernelRequest& request, Function function) {
  Kernel kernel;
  visit_dtype(types, request.dtype(),
              [&]<class T>() { kernel = broadcast_kernel<bool, T, T>(request, function); });
  return kernel;
}

}  // namespace graft
