#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/recurrent/recurrent.h"
#include "core/ops/recurrent/recurrent_activation.h"
#include "core/ops/recurrent/recurrent_gru.h"

/// What the forward and the gradient kernels of recurrent ops share.
namespace graft::recurrent {

/// Calls visitor(cell) with the cell of direction d.
template <class T, class Visitor>
void visit_cell(const RecurrentSettings& s, std::int64_t d, Visitor&& visitor) {
  const auto listed = [&](int which) {
    const bool is_gate = which < 2;
    return Listed<T>(s.activations[static_cast<std::size_t>(3 * d + which)],
                     is_gate ? s.clip : std::numeric_limits<double>::infinity());
  };
  using L = Listed<T>;
  switch (s.kind) {
    case RecurrentKind::lstm:
      if (s.is_default) return visitor(Lstm<T, Sigmoid<T>, Tanh<T>, Tanh<T>>{});
      return visitor(Lstm<T, L, L, L>{listed(0), listed(1), listed(2)});
    case RecurrentKind::gru:
      if (s.linear_before_reset) {
        if (s.is_default) return visitor(LinearGru<T, Sigmoid<T>, Tanh<T>>{});
        return visitor(LinearGru<T, L, L>{listed(0), listed(1)});
      }
      if (s.is_default) return visitor(Gru<T, Sigmoid<T>, Tanh<T>>{});
      return visitor(Gru<T, L, L>{listed(0), listed(1)});
    case RecurrentKind::rnn:
      if (s.is_default) return visitor(Rnn<T, Tanh<T>>{});
      return visitor(Rnn<T, L>{listed(0)});
  }
}

/// The cell of direction d, of whose rows run(cell, stage, parameters, row) computes one.
template <class T, class Row, class Run>
RowCell<T, Row> row_cell(const RecurrentSettings& s, std::int64_t d, Run run) {
  RowCell<T, Row> result;
  visit_cell<T>(s, d, [&]<class Cell>(const Cell& cell) {
    result = {Cell::kStages, Cell::kHasC, Cell::kSplitsGates,
              [cell, run](int stage, const CellParameters<T>& p, const Row& row) {
                run(cell, stage, p, row);
              }};
  });
  return result;
}

/// Sequence lengths, if given: what lies behind the end of a sequence is not computed, its state
/// stays, its output is 0.
class Lengths {
 public:
  explicit Lengths(const std::int32_t* lengths) : lengths_(lengths) {}
  bool has(std::int64_t sample, std::int64_t time) const {
    return lengths_ == nullptr || time < lengths_[sample];
  }

 private:
  const std::int32_t* lengths_;
};

/// Copies a state [batch, hidden] of one direction from or to where the graph has it. A null input
/// is zeros, to a null output nothing is written.
template <class T>
void load_state(const RecurrentSizes& sizes, std::int64_t direction, const T* given, T* state) {
  if (given == nullptr) {
    std::fill_n(state, sizes.state(), T{0});
    return;
  }
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    std::copy_n(given + sizes.state_at(b, direction), sizes.hidden, state + b * sizes.hidden);
  }
}
template <class T>
void store_state(const RecurrentSizes& sizes, std::int64_t direction, const T* state, T* output) {
  if (output == nullptr) return;
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    std::copy_n(state + b * sizes.hidden, sizes.hidden, output + sizes.state_at(b, direction));
  }
}

/// y[j, i] = x[i, j], each a row of `width` elements; x: [rows, columns, width].
template <class T>
void swap_axes(const T* x, std::int64_t rows, std::int64_t columns, std::int64_t width, T* y) {
  parallel_for(rows, 16384 / (columns * width + 1) + 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        std::copy_n(x + (i * columns + j) * width, width, y + (j * rows + i) * width);
      }
    }
  });
}

/// Samples whose steps one thread computes from the first to the last: no sample needs another.
struct Chain {
  std::int64_t first;
  std::int64_t count;
};

/// How the samples of each direction are divided.
struct Chains {
  std::vector<Chain> of_direction;
  bool at_once;  ///< a thread each, all directions together; else all threads share each product
};

/// Threads that share a product of a step wait for each other at each step; that pays only where a
/// product is large, or threads are many.
Chains divide_samples(const RecurrentSizes& sizes, std::int64_t gate_columns);

/// What a kernel does for one direction: the chains, after `begin` and before `end`.
struct DirectionWork {
  Kernel begin;
  std::vector<Kernel> chains;
  Kernel end;
};

/// Of `direction`, which has begin(args), run_chain(args, index), end(args).
template <class Direction>
DirectionWork work_of(Direction direction) {
  const auto shared = std::make_shared<const Direction>(std::move(direction));
  DirectionWork work;
  work.begin = [shared](const KernelArgs& args) { shared->begin(args); };
  for (std::size_t i = 0; i < shared->chain_count(); ++i) {
    work.chains.emplace_back([shared, i](const KernelArgs& args) { shared->run_chain(args, i); });
  }
  work.end = [shared](const KernelArgs& args) { shared->end(args); };
  return work;
}

Kernel run_directions(std::vector<DirectionWork> directions, bool at_once);

/// The parts of a kernel, run one after another on one workspace.
Kernel in_order(std::vector<Kernel> parts);

}  // namespace graft::recurrent
