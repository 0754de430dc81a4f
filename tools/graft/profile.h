#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "core/runtime/plan.h"

namespace graft::cli {

/// Steps by op and kernel, then the slowest steps: share of time, GFLOP/s, GB/s.
void print_profile(std::ostream& out, const std::vector<StepProfile>& steps, int runs);

/// An average run in Chrome's trace format (chrome://tracing, Perfetto).
/// Throws Error{io} if the file cannot be written.
void write_trace(const std::string& path, const std::vector<StepProfile>& steps, int runs);

}  // namespace graft::cli
