#pragma once

// The program's own header: Graft has one of the same name, which the program must never see.

namespace own {
inline constexpr int kCoreGraphEdit = 1;
}  // namespace own
