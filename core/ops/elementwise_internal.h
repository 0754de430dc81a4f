#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstdint>
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

/// A run whose inputs move by `steps` (0 or 1 each). Loops of their own for the frequent cases: all
/// inputs move, and, for floats only, since each of these loops costs time to compile, all but one.
template <class R, class... Ts, class Function, std::size_t... k>
void apply_broadcast_run(std::int64_t count, R* y, const Function& function,
                         const std::array<std::int64_t, sizeof...(Ts)>& steps,
                         std::index_sequence<k...>, const Ts*... x) {
  const int still_count = ((steps[k] == 0 ? 1 : 0) + ...);
  if (still_count == 0) return apply_run(count, y, function, Operand<Ts, true>{x}...);
  if constexpr ((std::is_floating_point_v<Ts> || ...)) {
    if (still_count == 1) {
      const auto all_but = [&]<std::size_t still>(std::integral_constant<std::size_t, still>) {
        apply_run(count, y, function, Operand<Ts, k != still>{x}...);
      };
      ((steps[k] == 0 ? all_but(std::integral_constant<std::size_t, k>{}) : void()), ...);
      return;
    }
  }
  apply_run(count, y, function, StridedOperand<Ts>{x, steps[k]}...);
}

}  // namespace detail

/// y = function(x0, x1, ...) with broadcasting, element by element, where input k has elements of
/// type Ts[k] and the output of type R. A function without branches and calls is compiled to vector
/// instructions.
template <class R, class... Ts, class Function>
Kernel broadcast_kernel(const KernelRequest& request, Function function) {
  constexpr int kCount = sizeof...(Ts);
  std::array<Shape, kCount> shapes;
  for (int k = 0; k < kCount; ++k) shapes[k] = request.shape(k);
  return [loop = BroadcastLoop<kCount>(request.output().shape, shapes),
          function](const KernelArgs& args) {
    loop.for_each_run([&](std::int64_t offset, const auto& from, std::int64_t count) {
      [&]<std::size_t... k>(std::index_sequence<k...> each) {
        detail::apply_broadcast_run(count, args.output<R>() + offset, function, loop.inner_steps(),
                                    each, args.input<Ts>(static_cast<int>(k)) + from[k]...);
      }
      (std::make_index_sequence<kCount>{});
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
