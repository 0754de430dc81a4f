// Casts between element types that the interpreter does not hold, with the CPU's bits
// (core/ops/kernels/convert.h says the rules). One kernel: a number is read as an i64 or an f64,
// which hold each of the types, and written as what is wanted.
#include <bit>
#include <cmath>
#include <limits>

#include "core/device/cuda/numbers.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"

namespace graft {
namespace {

using Types = TypeList<float, double, BFloat16, Half, std::int64_t, std::int32_t, std::int16_t,
                       std::int8_t, std::uint32_t, std::uint16_t, std::uint8_t, bool>;

/// As Half of core/base/float16.h.
__device__ float half_as_float(Half half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = half.bits & 0x7fffU;
  if (magnitude >= 0x7c00U) {
    return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13));
  }
  if (magnitude >= 0x400U) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
  const float small = static_cast<float>(magnitude) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(small));
}

/// Rounds to nearest even.
__device__ Half as_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t result = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  if (magnitude > 0x7f800000U) {
    result = 0x7e00U;  // NaN
  } else if (magnitude >= 0x477ff000U) {
    result = 0x7c00U;  // 65520 and above
  } else if (magnitude < 0x38800000U) {
    // Adding 0.5 leaves the rounded value in the low bits.
    result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  }
  Half half;
  half.bits = static_cast<std::uint16_t>(sign | result);
  return half;
}

/// To f32, so that a second rounding to a shorter type gives what one would have given.
__device__ float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool is_infinite = nearest == kInfinity || nearest == -kInfinity;
  if (back == value || value != value || is_infinite) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (::fabs(back) > ::fabs(value)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1U);
}

template <class To>
__device__ To whole_number(double value) {
  constexpr auto kLeast = static_cast<double>(std::numeric_limits<To>::min());
  constexpr To kHalf = std::numeric_limits<To>::max() / 2 + 1;
  constexpr double kBeyond = static_cast<double>(kHalf) * 2;
  if (!(value >= kLeast)) return value != value ? To{0} : std::numeric_limits<To>::min();
  return value < kBeyond ? static_cast<To>(value) : std::numeric_limits<To>::max();
}

template <class To, class From>
__device__ To number(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    BFloat16 result;
    set_float(result, round_to_odd(static_cast<double>(value)));
    return result;
  } else if constexpr (std::is_same_v<To, Half>) {
    return as_half(round_to_odd(static_cast<double>(value)));
  } else if constexpr (std::is_same_v<From, double> && std::is_integral_v<To>) {
    return whole_number<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

struct Cast {
  const void* x;
  void* y;
  DType from;
  DType to;
  bool from_float;

  __device__ void operator()(std::int64_t i) const {
    // By way of f64 a denormal would be lost where the processor flushes them.
    if (from == DType::f32 && to == DType::f32) {
      put<float>(i, read<float>(i));
    } else if (from_float) {
      write(i, floating(i));
    } else {
      write(i, whole(i));
    }
  }

 private:
  template <class From>
  __device__ From read(std::int64_t i) const {
    return static_cast<const From*>(x)[i];
  }

  __device__ double floating(std::int64_t i) const {
    switch (from) {
      case DType::f32:
        return read<float>(i);
      case DType::bf16:
        return as_float(read<BFloat16>(i));
      case DType::f16:
        return half_as_float(read<Half>(i));
      default:
        return read<double>(i);
    }
  }

  __device__ std::int64_t whole(std::int64_t i) const {
    switch (from) {
      case DType::i64:
        return read<std::int64_t>(i);
      case DType::i32:
        return read<std::int32_t>(i);
      case DType::i16:
        return read<std::int16_t>(i);
      case DType::i8:
        return read<std::int8_t>(i);
      case DType::u32:
        return read<std::uint32_t>(i);
      case DType::u16:
        return read<std::uint16_t>(i);
      case DType::u8:
        return read<std::uint8_t>(i);
      default:
        return read<std::uint8_t>(i) != 0 ? 1 : 0;
    }
  }

  template <class To, class Value>
  __device__ void put(std::int64_t i, Value value) const {
    static_cast<To*>(y)[i] = number<To>(value);
  }

  template <class Value>
  __device__ void write(std::int64_t i, Value value) const {
    switch (to) {
      case DType::f32:
        return put<float>(i, value);
      case DType::f64:
        return put<double>(i, value);
      case DType::bf16:
        return put<BFloat16>(i, value);
      case DType::f16:
        return put<Half>(i, value);
      case DType::i64:
        return put<std::int64_t>(i, value);
      case DType::i32:
        return put<std::int32_t>(i, value);
      case DType::i16:
        return put<std::int16_t>(i, value);
      case DType::i8:
        return put<std::int8_t>(i, value);
      case DType::u32:
        return put<std::uint32_t>(i, value);
      case DType::u16:
        return put<std::uint16_t>(i, value);
      case DType::u8:
        return put<std::uint8_t>(i, value);
      default:
        return put<bool>(i, value);
    }
  }
};

template <class... Ts>
bool holds(TypeList<Ts...>, DType dtype) {
  return ((dtype == dtype_of<Ts>) || ...);
}

Kernel make_cast(KernelRequest& request) {
  const DType from = request.dtype();
  const DType to = request.output().dtype;
  if (!holds(Types{}, from) || !holds(Types{}, to)) return {};
  return [from, to, size = request.output().shape.size(),
          stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
    start_items(Cast{args.inputs[0], args.outputs[0], from, to, is_float(from)}, size, stream);
  };
}

}  // namespace

void register_cast_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "plain", {{"Cast", make_cast}, {"CastLike", make_cast}});
}

}  // namespace graft
