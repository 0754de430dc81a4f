#include "core/ops/kernels/small_types.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace graft {
namespace {

/// A float of a sign, an exponent and a mantissa. Codes without the sign run through the numbers in
/// order: 0, subnormals, normals, `largest`, and what lies above it is special.
struct Format {
  int mantissa_bits;
  int least_exponent;      ///< of normal numbers
  std::uint32_t largest;   ///< code of the largest number
  std::uint32_t sign;      ///< bit of the sign
  std::uint32_t infinity;  ///< code for it without saturation
  std::uint32_t nan;
  bool signed_nan;  ///< NaN has a sign, and so has zero
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3fn:
      return {3, -6, 0x7e, 0x80, 0x7f, 0x7f, true};
    case DType::f8e4m3fnuz:
      return {3, -7, 0x7f, 0x80, 0x80, 0x80, false};
    case DType::f8e5m2:
      return {2, -14, 0x7b, 0x80, 0x7c, 0x7e, true};
    case DType::f8e5m2fnuz:
      return {2, -15, 0x7f, 0x80, 0x80, 0x80, false};
    default:
      return {1, 0, 0x7, 0x8, 0x7, 0x0, true};  // f4e2m1, whose NaN becomes -0
  }
}

/// Magnitude rounded to the nearest code, ties to even; may lie beyond the largest.
std::uint32_t nearest_code(float magnitude, const Format& f) {
  const int exponent =
      magnitude > 0.0F ? std::max(std::ilogb(magnitude), f.least_exponent) : f.least_exponent;
  const float steps = std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent));
  // A number that rounds up to the next power of two carries into the exponent by itself.
  return static_cast<std::uint32_t>(steps) +
         (static_cast<std::uint32_t>(exponent - f.least_exponent) << f.mantissa_bits);
}

std::uint32_t encode(float x, const Format& f, bool saturates) {
  const std::uint32_t sign = std::signbit(x) ? f.sign : 0U;
  if (std::isnan(x)) return f.signed_nan ? f.nan | (f.nan == 0 ? f.sign : sign) : f.nan;
  const float magnitude = std::abs(x);
  std::uint32_t code = std::isinf(x) ? f.largest + 1 : nearest_code(magnitude, f);
  if (code > f.largest) {
    if (!saturates && !f.signed_nan) return f.nan;
    code = saturates ? f.largest : f.infinity;
  }
  // Types with one NaN have one zero: the code of -0 is that NaN.
  return code == 0 && !f.signed_nan ? 0 : code | sign;
}

float decode(std::uint32_t code, DType dtype, const Format& f) {
  const std::uint32_t magnitude = code & (f.sign - 1);
  const float sign = (code & f.sign) != 0 ? -1.0F : 1.0F;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  if (!f.signed_nan && code == f.nan) return kNaN;
  if (magnitude > f.largest) {
    const bool is_infinity = dtype == DType::f8e5m2 && magnitude == f.infinity;
    return is_infinity ? sign * std::numeric_limits<float>::infinity() : kNaN;
  }
  const std::uint32_t hidden = 1U << f.mantissa_bits;
  const std::uint32_t exponent = magnitude >> f.mantissa_bits;
  const std::uint32_t mantissa = magnitude & (hidden - 1);
  const std::uint32_t steps = exponent == 0 ? mantissa : mantissa + hidden;
  const int shift = std::max(static_cast<int>(exponent), 1) - 1;
  return sign * std::ldexp(static_cast<float>(steps), f.least_exponent + shift - f.mantissa_bits);
}

constexpr std::uint32_t kScaleNaN = 0xff;

/// f8e8m0: a power of two, by its biased exponent.
std::uint32_t encode_scale(float x, const SmallRounding& rounding) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t exponent = bits >> 23 & 0xffU;
  const std::uint32_t fraction = bits & 0x7fffffU;
  if (exponent == 0xff) {
    return fraction == 0 && rounding.saturates ? kScaleNaN - 1 : kScaleNaN;
  }
  bool goes_up = false;
  if (rounding.scale == ScaleRounding::up) goes_up = fraction != 0;
  if (rounding.scale == ScaleRounding::nearest) {
    constexpr std::uint32_t kHalf = 0x400000;
    goes_up = fraction > kHalf || (fraction == kHalf && exponent > 0);
  }
  if (!goes_up || (rounding.saturates && exponent + 1 == kScaleNaN)) return exponent;
  return exponent + 1;
}

float decode_scale(std::uint32_t code) {
  if (code == kScaleNaN) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, static_cast<int>(code) - 127);
}

bool is_signed_small(DType dtype) {
  return dtype == DType::i4 || dtype == DType::i2;
}

/// Calls take(i, code) for `count` codes of `bits` bits each from element `first` on.
template <class Take>
void for_each_code(int bits, const void* data, std::int64_t first, std::int64_t count, Take take) {
  const auto* const bytes = static_cast<const std::uint8_t*>(data);
  const std::uint32_t mask = (1U << bits) - 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = (first + i) * bits;
    take(i, static_cast<std::uint32_t>(bytes[at / 8]) >> (at % 8) & mask);
  }
}

template <class Give>
void write_codes(int bits, void* data, std::int64_t first, std::int64_t count, Give give) {
  auto* const bytes = static_cast<std::uint8_t*>(data);
  const std::uint32_t mask = (1U << bits) - 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = (first + i) * bits;
    const std::uint32_t before = at % 8 == 0 ? 0U : bytes[at / 8];
    bytes[at / 8] = static_cast<std::uint8_t>(before | (give(i) & mask) << (at % 8));
  }
}

}  // namespace

bool is_small_float(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
      return true;
    default:
      return false;
  }
}

bool is_small_integer(DType dtype) {
  return is_signed_small(dtype) || dtype == DType::u4 || dtype == DType::u2;
}

void load_small(DType dtype, const void* data, std::int64_t first, std::int64_t count, float* to) {
  if (dtype == DType::f8e8m0) {
    for_each_code(8, data, first, count,
                  [&](std::int64_t i, std::uint32_t code) { to[i] = decode_scale(code); });
    return;
  }
  const Format f = format_of(dtype);
  for_each_code(bits_of(dtype), data, first, count,
                [&](std::int64_t i, std::uint32_t code) { to[i] = decode(code, dtype, f); });
}

void load_small(DType dtype, const void* data, std::int64_t first, std::int64_t count,
                std::int32_t* to) {
  const int bits = bits_of(dtype);
  const auto sign = is_signed_small(dtype) ? std::int32_t{1} << (bits - 1) : 0;
  for_each_code(bits, data, first, count, [&](std::int64_t i, std::uint32_t code) {
    to[i] = (static_cast<std::int32_t>(code) ^ sign) - sign;
  });
}

void store_small(DType dtype, const float* from, std::int64_t first, std::int64_t count, void* data,
                 const SmallRounding& rounding) {
  if (dtype == DType::f8e8m0) {
    write_codes(8, data, first, count,
                [&](std::int64_t i) { return encode_scale(from[i], rounding); });
    return;
  }
  const Format f = format_of(dtype);
  write_codes(bits_of(dtype), data, first, count,
              [&](std::int64_t i) { return encode(from[i], f, rounding.saturates); });
}

void store_small(DType dtype, const std::int32_t* from, std::int64_t first, std::int64_t count,
                 void* data) {
  write_codes(bits_of(dtype), data, first, count,
              [&](std::int64_t i) { return static_cast<std::uint32_t>(from[i]); });
}

}  // namespace graft
