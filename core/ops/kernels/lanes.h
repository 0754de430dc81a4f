#pragma once

#include <cstdint>
#include <cstring>
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

/// `lanes` numbers that are computed together: 16, 4 or 1. Operators work element by element.
template <int lanes>
using Lanes = typename LanesOf<lanes>::type;

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
  constexpr int kLanes = sizeof(V) / sizeof(float);
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

/// Bytes as the numbers they are.
template <int lanes>
Lanes<lanes> load(const std::uint8_t* from) {
  if constexpr (lanes == 1) {
    return static_cast<float>(*from);
  } else {
    typename LaneBits<lanes>::Byte bytes;
    std::memcpy(&bytes, from, sizeof(bytes));
    return __builtin_convertvector(bytes, Lanes<lanes>);
  }
}
/// Whole numbers of 0 to 255.
template <class V>
void store(std::uint8_t* to, const V& v) {
  constexpr int kLanes = sizeof(V) / sizeof(float);
  if constexpr (kLanes == 1) {
    *to = static_cast<std::uint8_t>(v);
  } else {
    const auto whole = __builtin_convertvector(v, typename LaneBits<kLanes>::Whole);
    const auto bytes = __builtin_convertvector(whole, typename LaneBits<kLanes>::Byte);
    std::memcpy(to, &bytes, sizeof(bytes));
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

/// Calls body.operator()<lanes>(i) for i in [0, count), 16 at a time, then 4, then 1.
template <class Body>
void for_each_lanes(std::int64_t count, Body&& body) {
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) body.template operator()<16>(i);
  for (; i + 4 <= count; i += 4) body.template operator()<4>(i);
  for (; i < count; ++i) body.template operator()<1>(i);
}

}  // namespace graft
