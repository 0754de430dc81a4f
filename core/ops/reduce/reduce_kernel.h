#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/reduce_row.h"
#include "core/ops/reduce/reduce_columns.h"
#include "core/ops/reduce/reduce_tasks.h"
#include "core/ops/registry.h"

namespace graft::reducing {

/// Types that reductions compute with, but for extremes, which take smaller ones too.
using MathTypes = TypeList<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;

/// The loops of a reduction: all but how it finishes.
template <class Op, class T>
class Accumulator {
 public:
  using Part = typename Op::Part;
  using Acc = typename Op::Acc;

  explicit Accumulator(const ReduceLoop& loop) : loop_(loop), tasks_(loop) {}

  const ReduceLoop& loop() const { return loop_; }
  const Tasks& tasks() const { return tasks_; }
  std::int64_t width(std::int64_t task) const {
    return std::min(kTile, loop_.columns - first_column(task));
  }
  std::int64_t output_offset(std::int64_t task) const {
    return task / tasks_.tiles * loop_.columns + first_column(task);
  }

  /// Reduces positions [first, last) of the reduced length of a task. y holds the shifts.
  void run(std::int64_t task, std::int64_t first, std::int64_t last, const T* x, const T* y,
           Acc* total) const {
    x += ReduceLoop::offset(task / tasks_.tiles, loop_.kept) + first_column(task);
    const std::int64_t columns = width(task);
    const std::int64_t wide = columns * tasks_.beside;
    Acc wide_total[kTile];
    T shift[kTile];
    Part part[kTile];
    if constexpr (Op::kShifted) {
      for (std::int64_t i = 0; i < wide; ++i) {
        const T value = y[output_offset(task) + i % columns];
        shift[i] = std::isfinite(value) ? value : T{0};
      }
    }
    std::fill_n(wide_total, wide, Op::template identity<Acc>());
    while (first < last) {
      const std::int64_t row = first % loop_.rows;
      const std::int64_t rows = std::min(loop_.rows - row, last - first);
      const T* const slab =
          x + ReduceLoop::offset(first / loop_.rows, loop_.reduced) + row * loop_.columns;
      if (loop_.columns == 1) {
        *wide_total = Op::combine_one(*wide_total,
                                      reduce_row<Op>(slab, rows, Op::kShifted ? shift[0] : T{0}));
      } else {
        reduce_slab(slab, rows, columns, shift, part, wide_total);
      }
      first += rows;
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      total[j] = wide_total[j];
      for (std::int64_t i = 1; i < tasks_.beside; ++i) {
        total[j] = Op::combine_one(total[j], wide_total[i * columns + j]);
      }
    }
  }

 private:
  std::int64_t first_column(std::int64_t task) const { return task % tasks_.tiles * kTile; }

  void reduce_slab(const T* slab, std::int64_t rows, std::int64_t columns, const T* shift,
                   Part* part, Acc* total) const {
    const std::int64_t beside = tasks_.beside;  // 1 unless the tile spans all columns
    reduce_columns<Op>(slab, rows / beside, loop_.columns * beside, columns * beside, shift, part,
                       total);
    const std::int64_t left = rows % beside;
    if (left > 0) {
      reduce_columns<Op>(slab + (rows - left) * columns, 1, 0, left * columns, shift, part, total);
    }
  }

  ReduceLoop loop_;
  Tasks tasks_;
};

template <class Op, class T>
class Reducer {
 public:
  using Acc = typename Op::Acc;

  explicit Reducer(const ReduceLoop& loop) : accumulator_(loop) {}

  std::size_t workspace_bytes() const {
    if (tasks().splits == 1) return 0;
    return static_cast<std::size_t>(tasks().count * tasks().splits * tasks().slots) * sizeof(Acc);
  }

  /// For an operation with a shift, y holds one shift an output and is overwritten.
  void run(const T* x, T* y, Acc* workspace) const {
    const std::int64_t length = accumulator_.loop().length();
    const std::int64_t splits = tasks().splits;
    parallel_for(tasks().count * splits, tasks().grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t piece = first; piece < last; ++piece) {
        const std::int64_t split = piece % splits;
        Acc local[kTile];
        Acc* const total = splits > 1 ? workspace + piece * tasks().slots : local;
        accumulator_.run(piece / splits, split * length / splits, (split + 1) * length / splits, x,
                         y, total);
        if (splits == 1) finish(piece, total, y);
      }
    });
    if (splits > 1) join(workspace, y);
  }

 private:
  const Tasks& tasks() const { return accumulator_.tasks(); }

  void finish(std::int64_t task, const Acc* total, T* y) const {
    y += accumulator_.output_offset(task);
    for (std::int64_t j = 0; j < accumulator_.width(task); ++j) {
      y[j] = Op::finish(total[j], accumulator_.loop().length(), Op::kShifted ? y[j] : T{0});
    }
  }

  void join(Acc* workspace, T* y) const {
    for (std::int64_t task = 0; task < tasks().count; ++task) {
      Acc* const total = workspace + task * tasks().splits * tasks().slots;
      for (std::int64_t split = 1; split < tasks().splits; ++split) {
        const Acc* const part = total + split * tasks().slots;
        for (std::int64_t j = 0; j < accumulator_.width(task); ++j) {
          total[j] = Op::combine_one(total[j], part[j]);
        }
      }
      finish(task, total, y);
    }
  }

  Accumulator<typename Op::Loop, T> accumulator_;
};

/// The kernel for a known set of axes; empty input and empty output included.
template <class Op, class T>
Kernel reduce_kernel(KernelRequest& request, const std::vector<bool>& reduced) {
  const std::int64_t outputs = request.output().shape.size();
  if (outputs == 0) return [](const KernelArgs&) {};
  if (request.shape().size() == 0) {
    return [outputs](const KernelArgs& args) {
      const T shift = 0;
      std::fill_n(args.output<T>(), outputs,
                  Op::finish(Op::template identity<typename Op::Acc>(), 0, shift));
    };
  }
  const Reducer<Op, T> reducer(ReduceLoop(request.shape(), reduced));
  request.need_workspace(std::max(request.workspace_bytes(), reducer.workspace_bytes()));
  return [reducer](const KernelArgs& args) {
    reducer.run(args.input<T>(0), args.output<T>(), static_cast<typename Op::Acc*>(args.workspace));
  };
}

/// The kernel of one operation for what the node asks; empty for a type outside `Types` or axes
/// that are not known.
template <template <class> class Op, class Types>
Kernel make(KernelRequest& request) {
  const auto reduced = reduced_axes(request.node(), request.shape().rank());
  if (!reduced) return {};
  Kernel kernel;
  visit_kernel_dtype(Types{}, request.dtype(),
                     [&]<class T>() { kernel = reduce_kernel<Op<T>, T>(request, *reduced); });
  return kernel;
}

inline void add_kernel(KernelRegistry& registry, std::string_view op, KernelFactory make_kernel) {
  registry.add({.op = op, .name = "eigen", .make = make_kernel, .serves_alike = true});
}

}  // namespace graft::reducing
