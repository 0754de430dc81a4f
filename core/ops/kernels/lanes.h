#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/base/float16.h"

namespace graft {

template <int lanes>
struct LanesOf {
  using type [[gnu::vector_size(lanes * sizeof(float))]] = float;
};
template <>
struct LanesOf<1> {
  using type = float;
};

/// Numbers that a register of the processor holds.
#if defined(__AVX512F__)
inline constexpr int kRegisterLanes = 16;
#elif defined(__AVX__)
inline constexpr int kRegisterLanes = 8;
#else
inline constexpr int kRegisterLanes = 4;
#endif

/// `lanes` numbers that are computed together: 16, 8, 4 or 1. Operators work element by element.
/// More than a register holds are computed register by register, but for comparisons, choices,
/// shuffles and conversions, which GCC 12 then computes one by one: see by_registers().
template <int lanes>
using Lanes = typename LanesOf<lanes>::type;
using Lanes16 = Lanes<16>;

/// n of Lanes<n>.
template <class V>
constexpr int lane_count() {
  if constexpr (std::is_same_v<V, float>) {
    return 1;
  } else {
    return sizeof(V) / sizeof(float);
  }
}

template <int lanes>
Lanes<lanes> load(const float* from) {
  Lanes<lanes> v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
template <class V>
void store(float* to, const V& v) {
  std::memcpy(to, &v, sizeof(v));
}

/// A byte, and the bits of a short and of a whole number, of each lane.
template <int lanes>
struct LaneBits {
  using Byte [[gnu::vector_size(lanes)]] = std::uint8_t;
  using Short [[gnu::vector_size(lanes * sizeof(std::uint16_t))]] = std::uint16_t;
  using Whole [[gnu::vector_size(lanes * sizeof(std::uint32_t))]] = std::uint32_t;
  using Signed [[gnu::vector_size(lanes * sizeof(std::int32_t))]] = std::int32_t;
};

/// bf16 numbers as f32.
template <int lanes>
Lanes<lanes> load(const BFloat16* from) {
  if constexpr (lanes == 1) {
    return static_cast<float>(*from);
  } else {
    typename LaneBits<lanes>::Short bits;
    std::memcpy(&bits, from, sizeof(bits));
    const auto whole = __builtin_convertvector(bits, typename LaneBits<lanes>::Whole) << 16;
    Lanes<lanes> v;
    std::memcpy(&v, &whole, sizeof(v));
    return v;
  }
}
/// Rounds as BFloat16 does, to nearest even.
template <class V>
void store(BFloat16* to, const V& v) {
  constexpr int kLanes = lane_count<V>();
  if constexpr (kLanes == 1) {
    *to = BFloat16(v);
  } else {
    typename LaneBits<kLanes>::Whole u;
    std::memcpy(&u, &v, sizeof(u));
    const auto rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
    const auto quiet = (u >> 16) | 0x40U;
    const auto whole = (u & 0x7fffffffU) > 0x7f800000U ? quiet : rounded;
    const auto bits = __builtin_convertvector(whole, typename LaneBits<kLanes>::Short);
    std::memcpy(static_cast<void*>(to), &bits, sizeof(bits));
  }
}

/// Bytes as the numbers they are, widened in steps that processors have.
template <int lanes>
Lanes<lanes> load(const std::uint8_t* from) {
  if constexpr (lanes == 1) {
    return static_cast<float>(*from);
  } else {
    typename LaneBits<lanes>::Byte bytes;
    std::memcpy(&bytes, from, sizeof(bytes));
    const auto shorts = __builtin_convertvector(bytes, typename LaneBits<lanes>::Short);
    const auto whole = __builtin_convertvector(shorts, typename LaneBits<lanes>::Signed);
    return __builtin_convertvector(whole, Lanes<lanes>);
  }
}
/// Whole numbers of 0 to 255.
template <class V>
void store(std::uint8_t* to, const V& v) {
  constexpr int kLanes = lane_count<V>();
  if constexpr (kLanes == 1) {
    *to = static_cast<std::uint8_t>(v);
  } else {
    using Bytes = typename LaneBits<kLanes>::Byte;
    const auto whole = __builtin_convertvector(v, typename LaneBits<kLanes>::Signed);
    Bytes bytes;
    if constexpr (kLanes == 16) {  // AVX-512 has it as one instruction
      bytes = __builtin_convertvector(whole, Bytes);
    } else {
      const auto shorts = __builtin_convertvector(whole, typename LaneBits<kLanes>::Short);
      bytes = __builtin_convertvector(shorts, Bytes);
    }
    std::memcpy(to, &bytes, sizeof(bytes));
  }
}

/// sums[i] += v[i]
template <int lanes>
void add_to(double* sums, const Lanes<lanes>& v) {
  if constexpr (lanes == 1) {
    *sums += static_cast<double>(v);
  } else {
    using Wide [[gnu::vector_size(lanes * sizeof(double))]] = double;
    Wide wide;
    std::memcpy(&wide, sums, sizeof(wide));
    wide += __builtin_convertvector(v, Wide);
    std::memcpy(sums, &wide, sizeof(wide));
  }
}

/// Calls body.operator()<i>() for i in [0, count): loops over registers.
template <int count, class Body>
void unroll(Body&& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (body.template operator()<i>(), ...);
  }
  (std::make_integer_sequence<int, count>());
}

/// f of vectors of as many lanes, whose parts it gets register by register.
template <class F, class First, class... More>
First by_registers(F&& f, const First& first, const More&... more) {
  constexpr int kLanes = lane_count<First>();
  if constexpr (kLanes <= kRegisterLanes) {
    return f(first, more...);
  } else {
    First result;
    unroll<kLanes / kRegisterLanes>([&]<int part>() {
      const auto part_of = [](const auto& whole) {
        Lanes<kRegisterLanes> v;
        std::memcpy(&v, reinterpret_cast<const char*>(&whole) + part * sizeof(v), sizeof(v));
        return v;
      };
      const Lanes<kRegisterLanes> done = f(part_of(first), part_of(more)...);
      std::memcpy(reinterpret_cast<char*>(&result) + part * sizeof(done), &done, sizeof(done));
    });
    return result;
  }
}

/// Calls body.operator()<lanes>(i) for i in [0, count): a register at a time, then 4, then 1.
template <class Body>
void for_each_lanes(std::int64_t count, Body&& body) {
  constexpr int kMost = kRegisterLanes;
  std::int64_t i = 0;
  for (; i + kMost <= count; i += kMost) body.template operator()<kMost>(i);
  if constexpr (kMost > 4) {
    for (; i + 4 <= count; i += 4) body.template operator()<4>(i);
  }
  for (; i < count; ++i) body.template operator()<1>(i);
}

}  // namespace graft
