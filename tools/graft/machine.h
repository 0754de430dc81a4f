#pragma once

#include <cstdint>

namespace graft::cli {

/// Floating-point operations per second of f32 fused multiply-adds (two operations each) on all
/// threads that kernels use, measured for about a fifth of a second.
double measure_fma_peak();

/// The most memory that this process has had resident so far.
std::uint64_t peak_resident_bytes();

}  // namespace graft::cli
