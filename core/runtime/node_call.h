#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/datum.h"

namespace graft {

/// A node that runs between plans.
struct NodeCall {
  /// The node's inputs (null where left out), then what its bodies read from outside.
  std::vector<const Value*> reads;
  /// One datum a read; returns one an output, as far as there are any.
  std::function<std::vector<Datum>(std::span<const Datum>)> run;
};

/// Makes ready to call any node: by its dynamic kernel; If, Loop, Scan and SequenceMap by programs
/// of their bodies; others by a kernel for the data that come, all of which are then known: that
/// makes shapes of what is computed (the target of a Reshape, the end of a Range). The node must
/// outlive the call.
NodeCall make_call(const Node& node);

/// If, Loop, Scan, SequenceMap: nodes that run bodies.
NodeCall make_control_call(const Node& node);

}  // namespace graft
