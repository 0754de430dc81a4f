#pragma once

#include <string>

namespace graft {

/// What a small file of the system holds, of /proc or /sys; empty where it cannot be read.
std::string read_system_file(const std::string& path);

}  // namespace graft
