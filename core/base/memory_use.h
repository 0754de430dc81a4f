#pragma once

#include <cstdint>
#include <string>

namespace graft {

/// As people write such a number: "100K (102400 bytes)" where it is a whole count of K, M, G or T
/// (powers of 1024), else "1000 bytes".
std::string size_text(std::uint64_t bytes);

/// Bytes of memory that this process has resident now; 0 where the system does not tell.
std::uint64_t resident_bytes();

/// The most memory that this process has had resident so far.
std::uint64_t peak_resident_bytes();

}  // namespace graft
