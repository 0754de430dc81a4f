#pragma once

#include "core/ops/kernel.h"

namespace graft {

/// The node's CPU kernel as a kernel of another device: operands are copied to the host, where it
/// runs, and results back, all in the order of the device's work and without waiting for it, so
/// that it can be recorded. The first kernel of an op says on stderr that the op runs so. A call
/// with other addresses than the last one may be given only when that one is done.
/// Throws Error{unsupported} if the CPU has no kernel either.
PreparedKernel prepare_fallback(const Node& node, Device& device);

}  // namespace graft
