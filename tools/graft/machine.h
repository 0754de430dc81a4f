#pragma once

namespace graft::cli {

/// Floating-point operations per second of f32 fused multiply-adds (two operations each) on all
/// threads that kernels use, measured for about a fifth of a second.
double measure_fma_peak();

/// Processor time of all threads of this process so far. Up to the first parallel loop that is the
/// time since the process began, libraries loaded, but for waits.
double processor_seconds();

}  // namespace graft::cli
