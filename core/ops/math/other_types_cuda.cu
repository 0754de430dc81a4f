// Element-wise ops on element types that the interpreter does not hold: i64, i32 and f64, and Where
// on any. A thread an element; what they give has the CPU's bits.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/ops/kernels/broadcast_cuda.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/width.h"

namespace graft {
namespace {

enum class Arithmetic {
  add,
  subtract,
  multiply,
  divide,
  remainder,  ///< with the sign of the divisor
  truncated_remainder,
  larger,
  smaller,
  negate,
  absolute,
  sign,
};

enum class Comparison { equal, less, less_or_equal, greater, greater_or_equal };

/// Signed overflow has no value in C++: integers compute as unsigned ones, which wrap round.
template <class T, bool is_whole = std::is_integral_v<T>>
struct Wrapping {
  using type = T;
};
template <class T>
struct Wrapping<T, true> {
  using type = std::make_unsigned_t<T>;
};

/// By zero an integer gives 0, and the lowest one by -1 itself.
template <class T>
__device__ T quotient(T a, T b) {
  using W = typename Wrapping<T>::type;
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<T>(W{0} - static_cast<W>(a));
  }
  return a / b;
}

template <class T>
__device__ T magnitude(T a) {
  using W = typename Wrapping<T>::type;
  if constexpr (std::is_integral_v<T>) {
    return a < 0 ? static_cast<T>(W{0} - static_cast<W>(a)) : a;
  } else {
    return static_cast<T>(::fabs(static_cast<double>(a)));
  }
}

template <class T>
__device__ T truncated_remainder(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return b == 0 || b == -1 ? T{0} : static_cast<T>(a % b);
  } else {
    return static_cast<T>(::fmod(static_cast<double>(a), static_cast<double>(b)));  // exact
  }
}

template <class T>
__device__ T floored_remainder(T a, T b) {
  const T rest = truncated_remainder(a, b);
  if constexpr (!std::is_integral_v<T>) {
    if (rest == 0) return static_cast<T>(::copysign(0.0, static_cast<double>(b)));
  }
  return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
}

template <class T>
__device__ T calculate(Arithmetic what, T a, T b) {
  using W = typename Wrapping<T>::type;
  const auto x = static_cast<W>(a);
  const auto y = static_cast<W>(b);
  switch (what) {
    case Arithmetic::add:
      return static_cast<T>(x + y);
    case Arithmetic::subtract:
      return static_cast<T>(x - y);
    case Arithmetic::multiply:
      return static_cast<T>(x * y);
    case Arithmetic::divide:
      return quotient(a, b);
    case Arithmetic::remainder:
      return floored_remainder(a, b);
    case Arithmetic::truncated_remainder:
      return truncated_remainder(a, b);
    case Arithmetic::larger:  // NaN wins
      return a > b || a != a ? a : b;
    case Arithmetic::smaller:
      return a < b || a != a ? a : b;
    case Arithmetic::negate:
      return std::is_integral_v<T> ? static_cast<T>(W{0} - x) : -a;
    case Arithmetic::absolute:
      return magnitude(a);
    case Arithmetic::sign:
      return a > 0 ? T{1} : a < 0 ? T{-1} : a;
  }
  return a;
}

template <class T>
struct Calculate {
  Arithmetic what;
  const T* x;
  const T* y;
  T* result;
  DeviceBroadcast from;

  __device__ void operator()(std::int64_t i) const {
    result[i] = calculate(what, x[from.place(0, i)], y[from.place(1, i)]);
  }
};

template <class T>
struct Compare {
  Comparison what;
  const T* x;
  const T* y;
  bool* result;
  DeviceBroadcast from;

  __device__ void operator()(std::int64_t i) const {
    result[i] = holds(x[from.place(0, i)], y[from.place(1, i)]);
  }

 private:
  __device__ bool holds(T a, T b) const {
    switch (what) {
      case Comparison::equal:
        return a == b;
      case Comparison::less:
        return a < b;
      case Comparison::less_or_equal:
        return a <= b;
      case Comparison::greater:
        return a > b;
      case Comparison::greater_or_equal:
        return a >= b;
    }
    return false;
  }
};

template <class T>
struct Choose {
  const std::uint8_t* condition;
  const T* x;
  const T* y;
  T* result;
  DeviceBroadcast from;

  __device__ void operator()(std::int64_t i) const {
    result[i] = condition[from.place(0, i)] != 0 ? x[from.place(1, i)] : y[from.place(2, i)];
  }
};

template <class What>
struct Row {
  std::string_view op;
  What what;
};

constexpr std::array kArithmetic{
    Row{"Add", Arithmetic::add},      Row{"Sub", Arithmetic::subtract},
    Row{"Mul", Arithmetic::multiply}, Row{"Div", Arithmetic::divide},
    Row{"Max", Arithmetic::larger},   Row{"Min", Arithmetic::smaller},
    Row{"Neg", Arithmetic::negate},   Row{"Abs", Arithmetic::absolute},
    Row{"Sign", Arithmetic::sign},    Row{"Mod", Arithmetic::remainder},
};

constexpr std::array kComparisons{
    Row{"Equal", Comparison::equal},
    Row{"Less", Comparison::less},
    Row{"LessOrEqual", Comparison::less_or_equal},
    Row{"Greater", Comparison::greater},
    Row{"GreaterOrEqual", Comparison::greater_or_equal},
};

template <class What, std::size_t n>
What what_of(const std::array<Row<What>, n>& rows, const Node& node) {
  return std::ranges::find(rows, node.op_type(), &Row<What>::op)->what;
}

using Types = TypeList<double, std::int64_t, std::int32_t>;

/// Of one or two operands; of one, that is the second as well.
template <class Make>
Kernel make_binary(const KernelRequest& request, const Make& make) {
  const int last = request.input_count() - 1;
  const DeviceBroadcast from(request.output().shape, {request.shape(0), request.shape(last)});
  if (last > 1 || !from.fits()) return {};
  return make(last, from);
}

template <class T>
Kernel make_calculation(const KernelRequest& request, Arithmetic what) {
  return make_binary(request, [&](int last, const DeviceBroadcast& from) -> Kernel {
    return [=, size = request.output().shape.size(),
            stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      start_items(Calculate<T>{what, args.input<T>(0), args.input<T>(last), args.output<T>(), from},
                  size, stream);
    };
  });
}

Kernel make_arithmetic(KernelRequest& request) {
  Arithmetic what = what_of(kArithmetic, request.node());
  const bool is_mod = what == Arithmetic::remainder;
  if (is_mod && request.attributes().get_int("fmod", 0) != 0) {
    what = Arithmetic::truncated_remainder;
  }
  Kernel kernel;
  visit_dtype(Types{}, request.dtype(),
              [&]<class T>() { kernel = make_calculation<T>(request, what); });
  if (is_mod && request.dtype() == DType::f32) kernel = make_calculation<float>(request, what);
  return kernel;
}

Kernel make_comparison(KernelRequest& request) {
  Kernel kernel;
  visit_dtype(Types{}, request.dtype(), [&]<class T>() {
    kernel = make_binary(request, [&](int last, const DeviceBroadcast& from) -> Kernel {
      return [=, what = what_of(kComparisons, request.node()), size = request.output().shape.size(),
              stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
        start_items(
            Compare<T>{what, args.input<T>(0), args.input<T>(last), args.output<bool>(), from},
            size, stream);
      };
    });
  });
  return kernel;
}

Kernel make_where(KernelRequest& request) {
  const DeviceBroadcast from(request.output().shape,
                             {request.shape(0), request.shape(1), request.shape(2)});
  Kernel kernel;
  if (request.dtype(0) != DType::boolean || !from.fits()) return kernel;
  visit_width(request.dtype(1), [&]<class T>() {
    kernel = [=, size = request.output().shape.size(),
              stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      start_items(Choose<T>{args.input<std::uint8_t>(0), args.input<T>(1), args.input<T>(2),
                            args.output<T>(), from},
                  size, stream);
    };
  });
  return kernel;
}

}  // namespace

void register_other_types_cuda(KernelRegistry& registry) {
  for (const auto& row : kArithmetic) {
    add_cuda_kernels(registry, "plain", {{row.op, make_arithmetic}});
  }
  for (const auto& row : kComparisons) {
    add_cuda_kernels(registry, "plain", {{row.op, make_comparison}});
  }
  add_cuda_kernels(registry, "plain", {{"Where", make_where}});
}

}  // namespace graft
