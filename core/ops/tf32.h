#pragma once

#include <string_view>

#include "core/graph/attribute.h"

namespace graft {

/// An attribute of products and convolutions: tensor cores may round their f32 operands to 10 bits
/// of mantissa. passes::compute_in_tf32 sets it; kernels without such a form compute in f32.
inline constexpr std::string_view kTf32 = "tf32";

inline bool allows_tf32(const Attributes& attributes) {
  return attributes.get_int(kTf32, 0) != 0;
}

}  // namespace graft
