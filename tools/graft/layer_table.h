#pragma once

#include "tools/graft/findings.h"

namespace graft::cli {

/// Prints a row for each node of the model for one batch: the name of its value, by which
/// --truncate and --output know it, op, shape, what it is the first to read of parameters,
/// multiply-adds, and the bytes of what it gives. Says why where there is no table.
void print_layers(const Findings& found);

}  // namespace graft::cli
