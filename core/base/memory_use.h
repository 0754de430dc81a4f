#pragma once

#include <cstdint>

namespace graft {

/// Bytes of memory that this process has resident now; 0 where the system does not tell.
std::uint64_t resident_bytes();

/// The most memory that this process has had resident so far.
std::uint64_t peak_resident_bytes();

}  // namespace graft
