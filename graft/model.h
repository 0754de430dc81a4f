#pragma once

// Models in memory: graphs, nodes, values, and formulas (Expr) that add nodes to them.

#include "core/graph/model.h"
#include "core/graph/print.h"
#include "core/ops/builder.h"
