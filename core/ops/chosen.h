#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/ops/op_def.h"

namespace graft {

// What of core/ops a program needs that trains or runs certain models, and no others (adr/0075). A
// build with GRAFT_MODELS registers those files alone, with kernels for those types alone.

/// From its first call on, rows that are looked up and types that kernels are asked for are
/// remembered, for the rest of the process.
void remember_lookups();

/// The files of rows and kernels behind all rows looked up since, sorted: "conv", "conv_cpu".
std::vector<std::string> files_looked_up();

/// The types of all values that kernels were asked for since, in the order of their numbers.
std::vector<DType> dtypes_looked_up();

/// GRAFT_MODELS as CMake got it; empty in a build that has all ops.
std::string_view chosen_models();

/// For the registry: that somebody asked for this row.
void note_lookup(const OpDef& row);
/// For kernels: that a value of a node that wants one has this type.
void note_lookup(DType dtype);

/// What to say of an op that has no row: "not known to Graft", or, in a build for certain models,
/// how to have it.
std::string_view missing_op();

/// What to add where a node has no kernel: nothing, or, in a build for certain models, that it has
/// kernels for their types alone, and how to have more.
std::string_view missing_kernel();

}  // namespace graft
