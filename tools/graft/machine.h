#pragma once

#include <cstdint>

namespace graft::cli {

/// Floating-point operations per second of f32 fused multiply-adds (two operations each) on all
/// threads that kernels use, measured for about a fifth of a second.
double measure_fma_peak();

/// Bytes of memory that this process has resident now; 0 where the system does not tell.
std::uint64_t resident_bytes();

/// The most memory that this process has had resident so far.
std::uint64_t peak_resident_bytes();

/// Processor time of all threads of this process so far. Up to the first parallel loop that is the
/// time since the process began, libraries loaded, but for waits.
double processor_seconds();

}  // namespace graft::cli
