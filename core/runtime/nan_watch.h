#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/graph/node.h"
#include "core/tensor/tensor.h"

namespace graft {

/// What the numbers of a tensor are.
struct NumberRange {
  /// Of those that are finite; least > greatest where there are none.
  double least = 1.0;
  double greatest = 0.0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
};
/// Of a tensor of floats on any device; that of others is empty.
NumberRange number_range(const Tensor& tensor);

/// Views of what a node reads, or of what it writes, on that device; not defined where left out.
/// `places`: of its inputs, then of its outputs.
std::vector<Tensor> operands_of(const Node& node, bool of_outputs, std::span<void* const> places,
                                Device& device);

/// Looks for the node that makes the first number of a run that is not finite. Infinities may be
/// meant, as in masks, and so may a NaN that is given, for a number that is missing: the first that
/// a node makes of finite numbers, and the first NaN that no node made, are remembered, and named
/// when an output, an update or a NaN comes of them.
class NanWatch {
 public:
  explicit NanWatch(std::size_t step_count) : step_count_(step_count) {}

  /// What the next node reads; its memory may be overwritten by what it writes.
  void before(const Node& node, const std::vector<Tensor>& inputs);
  /// Throws Error{numeric} naming the node if it made a NaN where it had read none, or updated a
  /// variable by numbers that are not finite.
  void after(const Node& node, const std::vector<Tensor>& outputs);
  /// Throws Error{numeric} if an output of the run has an infinity that came of a node's, or a NaN
  /// that came of what was given.
  void end(std::span<const Tensor> outputs) const;

 private:
  /// What made numbers of a result that are not finite; empty where they are or may be meant.
  const std::string& cause_of(const std::vector<NumberRange>& made) const;
  std::string report(const Node& node, const std::vector<Tensor>& outputs, bool nan) const;

  std::size_t step_count_;
  std::size_t step_ = 0;
  std::vector<Tensor> inputs_;
  std::vector<NumberRange> ranges_;
  std::string first_infinity_;
  std::string given_nan_;
};

}  // namespace graft
