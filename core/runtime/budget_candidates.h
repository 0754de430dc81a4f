#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace graft {

/// A value of the forward part that could be computed again.
struct Candidate {
  const Value* value;
  double bytes;
  /// What its node costs, and those before it whose outputs only a copy would read.
  double cost;
  bool is_read_late;  ///< by the backward part
  int made;           ///< forward nodes are numbered
  int last_forward_read;

  double density() const { return cost / bytes; }
};

/// Those of a training step, in the order in which they are made: values of some size whose nodes
/// may run twice. The graph as for fit_budget.
std::vector<Candidate> budget_candidates(const Graph& graph);

}  // namespace graft
