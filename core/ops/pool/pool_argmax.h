#pragma once

#include <cstdint>

namespace graft {

/// The argmax of a MaxPoolWithArgmax where a Relu lets none of its window pass.
inline constexpr std::uint8_t kNoTap = 255;

}  // namespace graft
