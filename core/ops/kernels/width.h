#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/dtype.h"
#include "core/ops/kernels/kernel_dtypes.h"

namespace graft {

/// Elements of 16 bytes, moved and not computed with.
struct alignas(16) Wide {
  std::uint64_t low;
  std::uint64_t high;
};

/// Calls visitor.template operator()<T>() with a type as wide as an element of `dtype`: for kernels
/// that move elements without looking at them. False for packed types and strings.
template <class Visitor>
bool visit_width(DType dtype, Visitor&& visitor) {
  switch (bits_of(dtype)) {
    case 8:
      return visitor.template operator()<std::uint8_t>(), true;
    case 16:
      return visitor.template operator()<std::uint16_t>(), true;
    case 32:
      return visitor.template operator()<float>(), true;
    case 64:
      return visitor.template operator()<double>(), true;
    case 128:
      return visitor.template operator()<Wide>(), true;
    default:
      return false;
  }
}

/// Bytes of an element that moves by itself: 0 of packed types and strings.
inline std::int64_t width_of(DType dtype) {
  std::int64_t width = 0;
  visit_width(dtype, [&]<class T>() { width = sizeof(T); });
  return width;
}

/// The types of a TypeList, where signed and unsigned integers of one width are visited as one, the
/// unsigned one: for what gives the same bits of both.
template <class Types>
struct Signless {};

template <class Types, class Visitor>
bool visit_kernel_dtype(Signless<Types>, DType dtype, Visitor&& visitor) {
  return visit_kernel_dtype(Types{}, dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      visitor.template operator()<std::make_unsigned_t<T>>();
    } else {
      visitor.template operator()<T>();
    }
  });
}

}  // namespace graft
