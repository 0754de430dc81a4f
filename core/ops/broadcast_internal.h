#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/shape.h"

namespace graft {

/// Elements to step over in `input` to advance one along each axis of the output that it broadcasts
/// to; 0 along the axes where it repeats.
inline std::vector<std::int64_t> broadcast_strides(const Shape& input, const Shape& output) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(output.rank()), 0);
  const std::vector<std::int64_t> own = input.strides();
  const int extra = output.rank() - input.rank();
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (input[axis] != 1) {
      strides[static_cast<std::size_t>(axis + extra)] = own[static_cast<std::size_t>(axis)];
    }
  }
  return strides;
}

/// Walks an output of N broadcast inputs as runs along the innermost axis. Neighbouring axes along
/// which every input moves alike are merged, so a same-shape call is one run.
template <int N>
class BroadcastLoop {
 public:
  BroadcastLoop(const Shape& output, const std::array<Shape, N>& inputs) {
    const int rank = output.rank();
    std::array<std::vector<std::int64_t>, N> strides;
    for (int k = 0; k < N; ++k) strides[k] = broadcast_strides(inputs[k], output);
    for (int axis = 0; axis < rank; ++axis) {
      if (output[axis] == 1 && rank > 1) continue;
      std::array<std::int64_t, N> step{};
      for (int k = 0; k < N; ++k) step[k] = strides[k][static_cast<std::size_t>(axis)];
      append_axis(output[axis], step);
    }
    if (dims_.empty()) append_axis(1, {});
    inner_ = dims_.back();
    outer_ = inner_ == 0 ? 0 : output.size() / inner_;
  }

  /// Elements of one run.
  std::int64_t inner() const { return inner_; }
  /// 0 or 1: how far input k moves along a run.
  std::int64_t inner_step(int k) const { return steps_.back()[k]; }
  /// Number of runs.
  std::int64_t outer() const { return outer_; }

  /// Calls body(output_offset, input_offsets) for each run, over all threads.
  template <class Body>
  void for_each_run(Body&& body) const {
    constexpr std::int64_t kElementsWorthAThread = 16384;
    const std::int64_t grain = kElementsWorthAThread / (inner_ == 0 ? 1 : inner_) + 1;
    parallel_for(outer_, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t run = first; run < last; ++run) body(run * inner_, offsets(run));
    });
  }

 private:
  void append_axis(std::int64_t dim, const std::array<std::int64_t, N>& step) {
    bool merges = !dims_.empty();
    for (int k = 0; merges && k < N; ++k) merges = steps_.back()[k] == step[k] * dim;
    if (merges) {
      dims_.back() *= dim;
      steps_.back() = step;
    } else {
      dims_.push_back(dim);
      steps_.push_back(step);
    }
  }

  std::array<std::int64_t, N> offsets(std::int64_t run) const {
    std::array<std::int64_t, N> result{};
    for (std::size_t axis = dims_.size() - 1; axis-- > 0;) {
      const std::int64_t at = run % dims_[axis];
      run /= dims_[axis];
      for (int k = 0; k < N; ++k) result[k] += at * steps_[axis][k];
    }
    return result;
  }

  std::vector<std::int64_t> dims_;
  std::vector<std::array<std::int64_t, N>> steps_;
  std::int64_t inner_ = 1;
  std::int64_t outer_ = 1;
};

}  // namespace graft
