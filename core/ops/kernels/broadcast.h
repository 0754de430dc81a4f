#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/base/machine.h"
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
  using Offsets = std::array<std::int64_t, N>;

  BroadcastLoop(const Shape& output, const std::array<Shape, N>& inputs) : size_(output.size()) {
    std::array<std::vector<std::int64_t>, N> strides;
    for (int k = 0; k < N; ++k) strides[k] = broadcast_strides(inputs[k], output);
    for (int axis = 0; axis < output.rank(); ++axis) {
      if (output[axis] == 1) continue;
      Offsets step{};
      for (int k = 0; k < N; ++k) step[k] = strides[k][static_cast<std::size_t>(axis)];
      append_axis(output[axis], step);
    }
    if (dims_.empty()) append_axis(1, {});
  }

  std::int64_t size() const { return size_; }
  /// 0 or 1: how far each input moves along a run.
  const Offsets& inner_steps() const { return steps_.back(); }

  /// Calls body(output_offset, input_offsets, count) for each run, or part of one, over all
  /// threads. Pieces are cut by elements, so few long runs are shared as evenly as many short ones.
  template <class Body>
  void for_each_run(Body&& body) const {
    parallel_for(size_, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
      const std::int64_t inner = dims_.back();
      const std::size_t outer_axis = dims_.size() - 2;  // meaningful when there are two axes
      std::int64_t within = first % inner;
      std::int64_t run = first / inner;
      Offsets at = offsets(run);
      std::int64_t row = dims_.size() > 1 ? run % dims_[outer_axis] : 0;
      while (first < last) {
        const std::int64_t count = std::min(inner - within, last - first);
        Offsets from = at;
        for (int k = 0; k < N; ++k) from[k] += within * steps_.back()[k];
        body(first, from, count);
        first += count;
        within = 0;
        if (first >= last) break;
        ++run;
        if (++row < dims_[outer_axis]) {  // the common case, without a division
          for (int k = 0; k < N; ++k) at[k] += steps_[outer_axis][k];
        } else {
          row = 0;
          at = offsets(run);
        }
      }
    });
  }

 private:
  void append_axis(std::int64_t dim, const Offsets& step) {
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

  /// Where a run starts in each input.
  Offsets offsets(std::int64_t run) const {
    Offsets result{};
    for (std::size_t axis = dims_.size() - 1; axis-- > 0;) {
      const std::int64_t at = run % dims_[axis];
      run /= dims_[axis];
      for (int k = 0; k < N; ++k) result[k] += at * steps_[axis][k];
    }
    return result;
  }

  std::int64_t size_;
  std::vector<std::int64_t> dims_;
  std::vector<Offsets> steps_;
};

}  // namespace graft
