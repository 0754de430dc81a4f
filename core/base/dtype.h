#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/float16.h"

namespace graft {

/// Element types, with ONNX's numbers (TensorProto.DataType). Kernels compute with some of them;
/// all others are carried through import and export as bytes.
enum class DType : int {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  c64 = 14,
  c128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
  f6e2m3 = 27,
  f6e3m2 = 28,
};

/// "f32", "i64", "bool", ...
std::string_view name(DType dtype);
inline void append_text(std::string& to, DType dtype) {
  to += name(dtype);
}

/// False for a number that ONNX 1.23 does not define.
bool is_known_dtype(int onnx_number);

/// Bits of one element; sub-byte types are packed. 0 for undefined and string.
int bits_of(DType dtype);

/// Bytes that `count` elements take, packed. Throws Error{shape} on overflow.
std::size_t bytes_of(DType dtype, std::int64_t count);

/// f16, bf16, f32, f64: the types that have gradients.
bool is_float(DType dtype);
/// i8..i64, u8..u64.
bool is_integer(DType dtype);

template <class T>
inline constexpr DType dtype_of = DType::undefined;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<Half> = DType::f16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <>
inline constexpr DType dtype_of<std::int16_t> = DType::i16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<std::uint16_t> = DType::u16;
template <>
inline constexpr DType dtype_of<std::uint32_t> = DType::u32;
template <>
inline constexpr DType dtype_of<std::uint64_t> = DType::u64;
template <>
inline constexpr DType dtype_of<bool> = DType::boolean;

template <class... Ts>
struct TypeList {};
using FloatTypes = TypeList<float, double>;
using IntegerTypes = TypeList<std::int64_t, std::int32_t, std::int16_t, std::int8_t, std::uint8_t,
                              std::uint16_t, std::uint32_t, std::uint64_t>;
using NumericTypes = TypeList<float, double, std::int64_t, std::int32_t, std::int16_t, std::int8_t,
                              std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
using AllTypes =
    TypeList<float, double, Half, BFloat16, std::int64_t, std::int32_t, std::int16_t, std::int8_t,
             std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>;

/// Calls `visitor.template operator()<T>()` with the C++ type of `dtype` when it stands in the
/// list and returns true; returns false otherwise. Use: `visit_dtype(FloatTypes{}, t, [&]<class
/// T>() {...})`.
template <class... Ts, class Visitor>
bool visit_dtype(TypeList<Ts...>, DType dtype, Visitor&& visitor) {
  return ((dtype == dtype_of<Ts> && (visitor.template operator()<Ts>(), true)) || ...);
}

}  // namespace graft
