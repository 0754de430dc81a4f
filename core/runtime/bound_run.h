#pragma once

#include <memory>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace graft {

struct PlanOptions;

/// Inference on memory of the caller, made by Session::bind. A run reads the inputs where they lie,
/// writes the outputs where they lie, and from the second on allocates nothing. Several run at the
/// same time, each on a thread of its own: each has its own memory for what comes in between. One
/// is not for use by two threads at once. On a card they follow one another, and each records
/// its second run, to replay it from then on until other tensors are bound.
class BoundRun {
 public:
  /// Takes a graph of known shapes that one plan holds. For Session, whose `bind` says the rest.
  BoundRun(std::unique_ptr<Graph> graph, PlanOptions options, const std::vector<Tensor>& inputs,
           const std::vector<Tensor>& outputs);
  ~BoundRun();
  BoundRun(BoundRun&&) noexcept;
  BoundRun& operator=(BoundRun&&) noexcept;

  /// Returns when the outputs are complete. What others write to the inputs on a card must be
  /// there.
  void run();

  /// What runs read and write from now on: other tensors of the same types and shapes. Throws as
  /// Session::bind; what was bound then remains.
  void bind(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs);

  const std::vector<Tensor>& inputs() const;
  const std::vector<Tensor>& outputs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graft
