#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace graft {

/// A step of a plan, as far as it matters here.
struct PlannedStep {
  const Node* node;
  bool has_workspace;
};

/// Which steps that follow one another a device may take together (core/ops/together.h): updates by
/// one rule without a workspace, of which none reads or writes what another writes. For each step
/// the end of the run that begins there; its own end if none does.
std::vector<std::size_t> update_runs(std::span<const PlannedStep> steps);

/// Lets updates stand at the end, behind everything that needs none of them, so that runs of them
/// are long. Those that make the gradient of a matrix themselves stay where they are.
void gather_updates(Graph& graph);

}  // namespace graft
