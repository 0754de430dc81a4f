#pragma once

#include <cstdint>

#include "core/base/dtype.h"

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

}  // namespace graft
