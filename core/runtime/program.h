#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/runtime/plan.h"
#include "core/tensor/datum.h"

namespace graft {

/// A graph made ready to run on data of any kind. It runs as a chain of segments: a plan for the
/// nodes whose shapes are known from the inputs, then node by node what no plan holds (nodes whose
/// results' shapes depend on data, bodies, sequences, strings), and then the rest, which is planned
/// for the shapes that have come out. What no plan holds runs on the CPU. All plans are kept and
/// found again by shapes. Not for use by two threads at once.
class Program {
 public:
  /// Takes a graph in the newest form. Throws nothing that depends on shapes: that is found by
  /// runs.
  Program(std::unique_ptr<Graph> graph, const PlanOptions& options = {});
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;

  /// `inputs`: one datum a required graph input, in order. The results lie on the CPU and share
  /// memory with nothing that changes.
  /// Throws Error{shape} or Error{type} if an input does not fit, Error{unsupported} naming a node
  /// that cannot run on these data.
  std::vector<Datum> run(std::span<const Datum> inputs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graft
