#pragma once

// Which Graft this is.

#include <string_view>

namespace graft {

/// "major.minor.patch". CMake reads the project's version here.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace graft
