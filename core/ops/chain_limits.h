#pragma once

namespace graft {

/// What an ElementwiseChain holds at most: its values are those of its body.
inline constexpr int kMostChainInputs = 8;
inline constexpr int kMostChainValues = 64;
inline constexpr int kMostLinkInputs = 4;

}  // namespace graft
