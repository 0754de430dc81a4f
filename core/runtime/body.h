#pragma once

#include <memory>
#include <vector>

#include "core/runtime/program.h"

namespace graft {

/// The body of an If, a Loop or a Scan, cut out of its graph: what it reads from outside has become
/// further inputs; outer constants have become its own. It runs on the CPU, as all that runs
/// between plans.
class Body {
 public:
  explicit Body(const Graph& body);

  /// Values of outer graphs, in the order of the further inputs.
  const std::vector<Value*>& captures() const { return captures_; }
  /// What the node hands over: inputs without a default.
  int argument_count() const { return argument_count_; }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  /// The type that is declared, or was inferred before the run.
  const ValueType& output_type(int index) const {
    return outputs_[static_cast<std::size_t>(index)];
  }

  /// `inputs`: the arguments, then the captures' data.
  std::vector<Datum> run(std::span<const Datum> inputs) { return program_->run(inputs); }

 private:
  std::vector<Value*> captures_;
  int argument_count_ = 0;
  std::vector<ValueType> outputs_;
  std::unique_ptr<Program> program_;
};

}  // namespace graft
