#pragma once

#include <string>

#include "core/graph/graph.h"

namespace graft::cli {

/// The graph as an SVG picture: nodes from top to bottom, each below all that it reads, with op and
/// output type. Nodes beyond the first few hundred are left out, and a line says so.
std::string svg_net(const Graph& graph);

}  // namespace graft::cli
