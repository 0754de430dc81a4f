#pragma once

#include <vector>

#include "core/ops/kernel.h"
#include "core/ops/op_def.h"

namespace graft {

// Ops of a program's own. What is registered is fixed with the first look at any op: when a model
// is trained, run, edited by layers, or built with formulas (loading a file does not look). So a
// program registers at the start of main; later, both functions throw Error{argument}. Names in
// rows and kernels are not copied: they must be literals.

/// Adds an op with its kernels, which are asked in this order; their `op` and `domain` become those
/// of the row. Files, training, sessions and `Expr` then know the op as they know Graft's. A row
/// without a rule for gradients says why (NotDifferentiable); samples may be left out. Throws
/// Error{argument} if there is such an op already, if the row has no name or inference, or is of
/// the domain ai.graft, which files never hold; Error{unsupported} for `is_dynamic`.
void register_op(OpDef row, const std::vector<KernelDef>& kernels);

/// Adds a kernel for an op that there is. It is asked before Graft's own, and after those that the
/// program registered earlier. Throws Error{argument} if there is no such op, or nothing that makes
/// the kernel.
void register_kernel(const KernelDef& kernel);

}  // namespace graft
