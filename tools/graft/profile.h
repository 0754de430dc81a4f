#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "core/runtime/plan.h"

namespace graft::cli {

/// Operations (two a multiply-add) of one run of the node, of products and convolutions and their
/// gradients, where practically all are; else 0.
double operations_of(const Node& node);

/// Steps by op and kernel, then the slowest steps: share of time, GFLOP/s, GB/s.
void print_profile(std::ostream& out, const std::vector<StepProfile>& steps, int runs);

/// An average run in Chrome's trace format (chrome://tracing, Perfetto).
/// Throws Error{io} if the file cannot be written.
void write_trace(const std::string& path, const std::vector<StepProfile>& steps, int runs);

}  // namespace graft::cli
