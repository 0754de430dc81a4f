#pragma once

// The program's own header: Graft has one of the same name, which the program must never see.

namespace own {
inline constexpr int kDataLoader = 1;
}  // namespace own
