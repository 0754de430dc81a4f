#pragma once

#include <cstddef>

namespace graft {

/// What an ElementwiseChain holds at most: its values are those of its body.
inline constexpr int kMostChainInputs = 8;
inline constexpr int kMostChainValues = 64;
inline constexpr int kMostLinkInputs = 4;

/// A convolution's result of so few bytes stays in a second-level cache as a whole: ConvChain,
/// which makes it by parts, gains nothing there.
inline constexpr std::size_t kSmallConvBytes = std::size_t{2} << 20;

}  // namespace graft
