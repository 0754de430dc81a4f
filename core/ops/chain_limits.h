#pragma once

#include <string_view>

namespace graft {

/// What an ElementwiseChain holds at most: its values are those of its body.
inline constexpr int kMostChainInputs = 8;
inline constexpr int kMostChainValues = 64;
inline constexpr int kMostLinkInputs = 4;

/// What the kernel that runs chains on cards is called, and what else it holds at most: inputs and
/// constants, these with all links, and axes of the result.
inline constexpr std::string_view kDeviceChainKernel = "interpreter";
inline constexpr int kMostDeviceChainOperands = 8;
inline constexpr int kMostDeviceChainValues = 24;
inline constexpr int kMostDeviceChainAxes = 6;

}  // namespace graft
