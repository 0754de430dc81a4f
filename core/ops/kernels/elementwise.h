#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "core/ops/kernel.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/prefetch.h"
#include "core/ops/kernels/width.h"

namespace graft {

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

/// An operand that moves, or one that stands still as many copies of it, which serve for every
/// `kCopies` elements of the run.
template <class T>
class Repeated {
 public:
  static constexpr std::int64_t kCopies = 256;

  Repeated(const RunOperand& x, std::int64_t count)
      : elements_(static_cast<const T*>(x.elements)), step_(x.step) {
    if (step_ == 1) return;
    std::fill_n(copies_, std::min(count, kCopies), *elements_);
  }
  const T* from(std::int64_t i) const { return step_ == 1 ? elements_ + i : copies_; }

 private:
  const T* elements_;
  std::int64_t step_;
  T copies_[kCopies];
};

/// The output may be one buffer with an input: element i is read before it is written, and no
/// other iteration touches it.
template <class R, class Function, class... Operands>
void apply_run(std::int64_t count, R* y, const Function& function, Operands... x) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(function(x[i]...));
}

/// Of operands that all move: one loop, called from several places. Long runs come from memory and
/// are asked for in advance: hardware foresees reads within a page, and a function that takes its
/// time would wait anew in each.
template <class R, class... Ts, class Function>
[[gnu::noinline]] void apply_moving(std::int64_t count, R* y, Function function, const Ts*... x) {
  constexpr std::int64_t kLong = 8192;
  constexpr std::int64_t kBlock = 256;
  constexpr std::int64_t kAhead = 512;
  std::int64_t first = 0;
  for (; count >= kLong && first + kBlock <= count; first += kBlock) {
    (prefetch_run(x + first + kAhead, kBlock), ...);
    apply_run(kBlock, y + first, function, Operand<Ts, true>{x + first}...);
  }
  apply_run(count - first, y + first, function, Operand<Ts, true>{x + first}...);
}

/// Operands that stand still serve the loop as copies. Floats have loops of their own for one
/// operand that stands still beside others that move. Where none moves, one result is all.
template <class R, class... Ts, class Function, std::size_t... k>
void apply(std::int64_t count, std::span<const RunOperand> x, R* y, const Function& function,
           std::index_sequence<k...>) {
  const int still_count = ((x[k].step == 0 ? 1 : 0) + ...);
  if (still_count == 0 || still_count == sizeof...(Ts)) {
    const std::int64_t computed = still_count == 0 ? count : std::min<std::int64_t>(count, 1);
    apply_moving(computed, y, function, static_cast<const Ts*>(x[k].elements)...);
    if (computed < count) std::fill_n(y + computed, count - computed, *y);
    return;
  }
  if constexpr ((std::is_floating_point_v<Ts> || ...) && sizeof...(Ts) > 1) {
    if (still_count == 1) {
      const auto all_but = [&]<std::size_t still>(std::integral_constant<std::size_t, still>) {
        apply_run(count, y, function,
                  Operand<Ts, k != still>{static_cast<const Ts*>(x[k].elements)}...);
      };
      ((x[k].step == 0 ? all_but(std::integral_constant<std::size_t, k>{}) : void()), ...);
      return;
    }
  }
  if constexpr (sizeof...(Ts) > 1) {
    constexpr std::int64_t kCopies = Repeated<R>::kCopies;
    const auto run = [&](const auto&... operands) {
      for (std::int64_t first = 0; first < count; first += kCopies) {
        apply_moving(std::min(kCopies, count - first), y + first, function,
                     operands.from(first)...);
      }
    };
    run(Repeated<Ts>(x[k], count)...);
  }
}

}  // namespace detail

/// y[i] = function(x[0][i], x[1][i], ...) for `count` elements, where operand k has elements of
/// type Ts[k] and the result of type R. A function without branches and calls is compiled to vector
/// instructions.
template <class R, class... Ts, class Function>
void apply_to_run(std::int64_t count, std::span<const RunOperand> x, void* y,
                  const Function& function) {
  detail::apply<R, Ts...>(count, x, static_cast<R*>(y), function,
                          std::make_index_sequence<sizeof...(Ts)>{});
}

/// The same, prepared.
template <class R, class... Ts, class Function>
RunFunction run_function(Function function) {
  return [function](std::int64_t count, std::span<const RunOperand> x, void* y) {
    apply_to_run<R, Ts...>(count, x, y, function);
  };
}

/// The kernel that applies `run` to whole tensors: broadcasting, over all threads. Empty for more
/// inputs than any op of a fixed number has.
Kernel elementwise_kernel(const KernelRequest& request, RunFunction run);

/// A function of one operand, for the element type of input 0; empty for a type outside `types`.
template <class Types, class Function>
RunFunction dispatch_unary(Types types, const KernelRequest& request, Function function) {
  RunFunction run;
  visit_kernel_dtype(types, request.dtype(),
                     [&]<class T>() { run = run_function<T, T>(function); });
  return run;
}

/// The same with a result of type R.
template <class R, class Types, class Function>
RunFunction dispatch_unary_to(Types types, const KernelRequest& request, Function function) {
  RunFunction run;
  visit_kernel_dtype(types, request.dtype(),
                     [&]<class T>() { run = run_function<R, T>(function); });
  return run;
}

/// Two operands of one type and a result of the same.
template <class Types, class Function>
RunFunction dispatch_binary(Types types, const KernelRequest& request, Function function) {
  RunFunction run;
  visit_kernel_dtype(types, request.dtype(),
                     [&]<class T>() { run = run_function<T, T, T>(function); });
  return run;
}

/// A comparison: bool result.
template <class Types, class Function>
RunFunction dispatch_compare(Types types, const KernelRequest& request, Function function) {
  RunFunction run;
  visit_kernel_dtype(types, request.dtype(),
                     [&]<class T>() { run = run_function<bool, T, T>(function); });
  return run;
}

}  // namespace graft
