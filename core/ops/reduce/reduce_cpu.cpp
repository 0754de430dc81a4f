#include <Eigen/Core>
#include <cmath>
#include <concepts>
#include <limits>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/column_sums.h"
#include "core/ops/kernels/reduce_row.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Columns that one task reduces at a time: partial results stay in the nearest cache.
constexpr std::int64_t kTile = 512;
/// Below this many columns several rows are reduced side by side, as one row of about this width.
constexpr std::int64_t kWide = 256;
/// Rows added in the element type before they go into the wide accumulator.
constexpr std::int64_t kBlockRows = 16;

/// Asks for `count` elements that are read soon: the processor's own guesses end with each row.
/// Behind the last row lies the next slab or nothing, which does no harm.
template <class T>
void prefetch(const T* x, std::int64_t count) {
  constexpr std::int64_t kLine = kCacheLineBytes / std::int64_t{sizeof(T)};
  for (std::int64_t i = 0; i < count; i += kLine) __builtin_prefetch(x + i);
}

/// Reduces `rows` rows of `width` contiguous integers, `stride` apart, into `total`: four rows at a
/// time, so that totals are read and written less often.
template <class Op, std::integral T>
void reduce_columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width,
                    const T* /*shift*/, typename Op::Part* /*part*/, typename Op::Acc* total) {
  std::int64_t i = 0;
  for (; i + 3 < rows; i += 4, x += 4 * stride) {
    for (std::int64_t j = 0; j < width; ++j) {
      const auto at = [&](std::int64_t row) { return Op::map_one(x[row * stride + j]); };
      total[j] = Op::combine_one(
          total[j], Op::combine_one(Op::combine_one(at(0), at(1)), Op::combine_one(at(2), at(3))));
    }
  }
  for (; i < rows; ++i, x += stride) {
    for (std::int64_t j = 0; j < width; ++j) {
      total[j] = Op::combine_one(total[j], Op::map_one(x[j]));
    }
  }
}

/// The same of floats, through `part` for rows that are added in the element type.
template <class Op, std::floating_point T>
void reduce_columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width,
                    const T* shift, typename Op::Part* part_memory,
                    typename Op::Acc* total_memory) {
  using Rows = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
  Eigen::Map<Eigen::Array<typename Op::Part, Eigen::Dynamic, 1>> part(part_memory, width);
  Eigen::Map<Eigen::Array<typename Op::Acc, Eigen::Dynamic, 1>> total(total_memory, width);
  const Rows shifts(shift, width);
  const auto row = [&](std::int64_t index) {
    return Op::map(Rows(x + index * stride, width), shifts);
  };
  for (std::int64_t first = 0; first < rows; first += kBlockRows) {
    const std::int64_t last = std::min(rows, first + kBlockRows);
    part = Op::template identity<typename Op::Part>();
    std::int64_t i = first;
    for (; i + 3 < last; i += 4) {
      for (int ahead = 4; ahead < 8; ++ahead) prefetch(x + (i + ahead) * stride, width);
      part = Op::combine(
          part, Op::combine(Op::combine(row(i), row(i + 1)), Op::combine(row(i + 2), row(i + 3))));
    }
    for (; i < last; ++i) part = Op::combine(part, row(i));
    total = Op::combine(total, part.template cast<typename Op::Acc>());
  }
}

/// How the work of one reduction is cut. A task is a tile of columns of one outer index; when there
/// are few tasks, each is split along the reduced length, and the parts are joined in order. All
/// of it depends on the shape alone, so the result does not depend on the number of threads.
struct Tasks {
  explicit Tasks(const ReduceLoop& loop) {
    if (loop.columns > 1) beside = std::clamp<std::int64_t>(kWide / loop.columns, 1, loop.rows);
    tiles = (loop.columns + kTile - 1) / kTile;
    count = loop.outer * tiles;
    constexpr std::int64_t kFewTasks = 16;
    constexpr std::int64_t kRowsWorthASplit = 128;  // one thread joins a row of totals a split
    const std::int64_t width = std::min(loop.columns, kTile);
    if (count < kFewTasks) {
      const std::int64_t least = std::max(kElementwiseGrain / width, kRowsWorthASplit);
      splits = std::clamp<std::int64_t>(loop.length() / least, 1, 64 / count);
    }
    slots = width;
    grain = kElementwiseGrain / std::max<std::int64_t>(1, loop.length() / splits * width) + 1;
  }

  std::int64_t beside = 1;
  std::int64_t tiles;
  std::int64_t count;
  std::int64_t splits = 1;
  std::int64_t slots;  ///< accumulators a task
  std::int64_t grain;
};

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

template <template <class> class Op, class Types>
Kernel make(KernelRequest& request) {
  const auto reduced = reduced_axes(request.node(), request.shape().rank());
  if (!reduced) return {};
  Kernel kernel;
  visit_dtype(Types{}, request.dtype(),
              [&]<class T>() { kernel = reduce_kernel<Op<T>, T>(request, *reduced); });
  return kernel;
}

/// bool is one byte of 0 or 1, ordered as a number.
template <template <class> class Op>
Kernel make_extreme(KernelRequest& request) {
  if (request.dtype() != DType::boolean) return make<Op, NumericTypes>(request);
  const auto reduced = reduced_axes(request.node(), request.shape().rank());
  if (!reduced) return {};
  if (request.shape().size() == 0 && request.output().shape.size() > 0) {
    const std::int64_t outputs = request.output().shape.size();
    return [outputs](const KernelArgs& args) {
      const bool empty_value = Op<int>::template identity<int>() > 0;
      std::fill_n(args.output<bool>(), outputs, empty_value);
    };
  }
  return reduce_kernel<Op<std::uint8_t>, std::uint8_t>(request, *reduced);
}

/// log(sum(exp(x - max))) + max: the maxima go to the output first and serve as shifts.
Kernel make_log_sum_exp(KernelRequest& request) {
  const Kernel largest = make<reducing::Max, FloatTypes>(request);
  const Kernel sum = make<reducing::LogSumExp, FloatTypes>(request);
  if (!largest || !sum) return {};
  return [largest, sum](const KernelArgs& args) {
    largest(args);
    sum(args);
  };
}

/// Sums of columns stored in bf16: by them biases train in mixed precision.
Kernel make_bf16_column_sums(KernelRequest& request) {
  const auto reduced = reduced_axes(request.node(), request.shape().rank());
  if (!reduced || request.dtype() != DType::bf16 || request.shape().size() == 0) return {};
  const ReduceLoop loop(request.shape(), *reduced);
  if (loop.outer != 1 || loop.slabs != 1 || loop.columns == 1) return {};
  const ColumnSums sums(loop.rows, loop.columns);
  WorkspaceLayout layout;
  const std::size_t scratch = layout.reserve_bytes(sums.workspace_bytes());
  const std::size_t totals = layout.reserve<float>(loop.columns);
  request.need_workspace(layout.bytes());
  return [sums, scratch, totals, columns = loop.columns](const KernelArgs& args) {
    float* const y = workspace_at<float>(args, totals);
    sums.run(args.input<BFloat16>(0), y, workspace_at<std::byte>(args, scratch));
    convert_floats(y, columns, args.output<BFloat16>());
  };
}

using MathTypes = TypeList<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;

}  // namespace

void register_reduce_cpu(KernelRegistry& registry) {
  using namespace reducing;
  const auto add = [&](std::string_view op, KernelFactory make_kernel) {
    registry.add({.op = op, .name = "eigen", .make = make_kernel});
  };
  registry.add({.op = "ReduceSum", .name = "bf16_columns", .make = make_bf16_column_sums});
  add("ReduceSum", make<Sum, MathTypes>);
  add("ReduceMean", make<Mean, MathTypes>);
  add("ReduceProd", make<Product, MathTypes>);
  add("ReduceMax", make_extreme<Max>);
  add("ReduceMin", make_extreme<Min>);
  add("ReduceL1", make<L1, MathTypes>);
  add("ReduceL2", make<L2, MathTypes>);
  add("ReduceSumSquare", make<SumSquare, MathTypes>);
  add("ReduceLogSum", make<LogSum, FloatTypes>);
  add("ReduceLogSumExp", make_log_sum_exp);
}

}  // namespace graft
