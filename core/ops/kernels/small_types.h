#pragma once

#include <array>
#include <cstdint>

#include "core/base/dtype.h"

namespace graft {

/// Element types of 8 bits and less that no kernel computes with: they are packed, the first
/// element in the lowest bits, and are read and written in blocks.
enum class ScaleRounding { up, down, nearest };

/// How floats become small floats (ONNX, Cast).
struct SmallRounding {
  /// Beyond the range: the largest number, else NaN or infinity. f4e2m1 always takes the largest.
  bool saturates = true;
  /// Of f8e8m0; the others round to the nearest, ties to even.
  ScaleRounding scale = ScaleRounding::up;
};

/// f8*, f4e2m1.
bool is_small_float(DType dtype);
/// i4, u4, i2, u2.
bool is_small_integer(DType dtype);

/// Elements of a block: whole bytes for every type.
inline constexpr std::int64_t kSmallBlock = 256;
template <class T>
using SmallBlock = std::array<T, kSmallBlock>;

/// Reads `count` elements of a small float type from the one at `first`, a multiple of the block.
void load_small(DType dtype, const void* data, std::int64_t first, std::int64_t count, float* to);
/// The same of a small integer type.
void load_small(DType dtype, const void* data, std::int64_t first, std::int64_t count,
                std::int32_t* to);
/// Writes elements; bits behind the last of them are 0.
void store_small(DType dtype, const float* from, std::int64_t first, std::int64_t count, void* data,
                 const SmallRounding& rounding);
/// Small integers keep the low bits.
void store_small(DType dtype, const std::int32_t* from, std::int64_t first, std::int64_t count,
                 void* data);

}  // namespace graft
