#pragma once

#include "core/ops/kernel.h"

namespace graft {

/// The device's own kernel for the node in f32, with its Casts of each operand of a short type
/// before and of each result behind, in the workspace. Empty if the device has one of these not, if
/// no operand is short, or if the node updates a variable.
PreparedKernel prepare_through_f32(const Node& node, Device& device);

}  // namespace graft
