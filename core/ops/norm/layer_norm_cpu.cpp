#include <array>

#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/norm_row.h"
#include "core/ops/norm/layer_norm_rows.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Writes numbers of one float type, chosen when the plan is built.
using Store = void (*)(void* target, std::int64_t index, double value);

Store store_of(DType dtype) {
  Store store = nullptr;
  visit_kernel_dtype(TypeList<float, double, Half, BFloat16>{}, dtype, [&]<class T>() {
    store = [](void* target, std::int64_t index, double value) {
      if constexpr (sizeof(T) == 2) {
        static_cast<T*>(target)[index] = T(static_cast<float>(value));
      } else {
        static_cast<T*>(target)[index] = static_cast<T>(value);
      }
    };
  });
  return store;
}

/// y = (x - mean) * inv_std * scale + bias; a null scale counts as 1, a null bias as 0. y may be x.
template <class T>
void normalize_row(const T* x, std::int64_t n, const Center<T>& center, double inv_std,
                   const T* scale, const T* bias, T* y) {
  const T middle = center.middle;  // clang captures no structured bindings in simd loops
  const T rest = center.rest;
  const T slope = static_cast<T>(inv_std);
  if (scale == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - middle - rest) * slope;
  } else if (bias == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - middle - rest) * slope * scale[i];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - middle - rest) * slope * scale[i] + bias[i];
  }
}

template <class T>
void broadcast_parameters(const BroadcastLoop<2>& loop, const T* scale, const T* bias, T* y) {
  loop.for_each_run([&](std::int64_t at, const BroadcastLoop<2>::Offsets& from,
                        std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T product = y[at + i] * scale[from[0] + i * loop.inner_steps()[0]];
      y[at + i] = bias == nullptr ? product : product + bias[from[1] + i * loop.inner_steps()[1]];
    }
  });
}

/// Some rows, whose moments are all computed before the first is normalized: the processor then
/// works on several at a time, where the chain of sums, root and quotient of one would keep it
/// waiting.
template <template <class> class Stats, class T>
class RowBlock {
 public:
  /// Long rows keep the processor busy one by one, and are still in its first cache then.
  static std::int64_t most(std::int64_t length) {
    return std::clamp<std::int64_t>(1024 / std::max<std::int64_t>(1, length), 1, kMost);
  }

  /// Of `count` rows from x on.
  RowBlock(const T* x, std::int64_t count, const NormRows& rows)
      : count_(count), length_(rows.length) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Stats<T> stats(x + i * length_, length_, rows.epsilon);
      moments_[static_cast<std::size_t>(i)] = {stats.mean, stats.inv_std, stats.center};
    }
  }

  double mean(std::int64_t row) const { return moments_[static_cast<std::size_t>(row)].mean; }
  double inv_std(std::int64_t row) const { return moments_[static_cast<std::size_t>(row)].inv_std; }

  void normalize(const T* x, const T* scale, const T* bias, T* y) const {
    for (std::int64_t i = 0; i < count_; ++i) {
      normalize_row(x + i * length_, length_, moments_[static_cast<std::size_t>(i)].center,
                    inv_std(i), scale, bias, y + i * length_);
    }
  }

 private:
  static constexpr std::int64_t kMost = 8;
  struct RowMoments {
    double mean;
    double inv_std;
    Center<T> center;
  };

  std::int64_t count_;
  std::int64_t length_;
  std::array<RowMoments, kMost> moments_;
};

template <template <class> class Stats>
Kernel make_forward(KernelRequest& request) {
  const NormRows rows(request, 0);
  const Shape& x = request.shape();
  const bool has_bias = request.input_count() > 2 && request.has_input(2);
  const Shape& scale = request.shape(1);
  const Shape bias = has_bias ? request.shape(2) : Shape();
  const bool is_plain =
      is_row_parameter(x, rows.axis, scale) && (!has_bias || is_row_parameter(x, rows.axis, bias));
  const BroadcastLoop<2> loop(x, {scale, bias});
  const auto store = [&](int output) -> Store {
    const bool there = output < request.output_count() && request.has_output(output);
    return there ? store_of(request.output(output).dtype) : nullptr;
  };
  const Store store_mean = store(1);
  const Store store_inv_std = store(2);
  const std::int64_t grain = kRowwiseGrain / std::max<std::int64_t>(1, rows.length) + 1;
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      const T* const gain = args.input<T>(1);
      const T* const offset = has_bias ? args.input<T>(2) : nullptr;
      parallel_for(rows.count, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first, count = 0; row < last; row += count) {
          count = std::min(RowBlock<Stats, T>::most(rows.length), last - row);
          const RowBlock<Stats, T> block(args.input<T>(0) + row * rows.length, count, rows);
          block.normalize(args.input<T>(0) + row * rows.length, is_plain ? gain : nullptr,
                          is_plain ? offset : nullptr, args.output<T>() + row * rows.length);
          for (std::int64_t i = 0; i < count; ++i) {
            if (store_mean != nullptr) store_mean(args.outputs[1], row + i, block.mean(i));
            if (store_inv_std != nullptr) store_inv_std(args.outputs[2], row + i, block.inv_std(i));
          }
        }
      });
      if (!is_plain) broadcast_parameters(loop, gain, offset, args.output<T>());
    };
  });
  return kernel;
}

/// Sums over rows of what each row gives to the parameters: rows are cut into pieces whose number
/// does not depend on the threads; within a piece runs of rows are summed in T, runs in f64.
template <class T>
struct ParameterSums {
  static constexpr std::int64_t kRowsPerRun = 64;

  ParameterSums(const NormRows& rows, void* workspace)
      : totals(static_cast<double*>(workspace)),
        runs(reinterpret_cast<T*>(totals + pieces(rows) * 2 * rows.length)) {}

  static std::int64_t pieces(const NormRows& rows) {
    return std::clamp<std::int64_t>(rows.count / 16, 1, 16);
  }
  static std::size_t bytes(const NormRows& rows) {
    const std::int64_t numbers = checked_multiply(pieces(rows) * 2, rows.length);
    return bytes_of(DType::f64, numbers) + bytes_of(dtype_of<T>, numbers);
  }

  double* totals;  ///< [piece][scale, bias][length]
  T* runs;         ///< the same
};

template <class T>
void flush(T* run, double* total, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    total[i] += static_cast<double>(run[i]);
    run[i] = T{0};
  }
}

/// With h = (x - mean) * s, g = dy * scale: dx = s (g - mean(g) - h mean(g h)), mean(g) only where
/// a mean was subtracted; adds dy * h to dscale and dy to dbias.
template <class T, bool kCentered>
void differentiate_row(const T* dy, const T* x, const T* scale, std::int64_t n,
                       const Center<T>& center, double inv_std, T* dx, T* dscale, T* dbias) {
  const T middle = center.middle;
  const T rest = center.rest;
  const TwoSums<T> sums(n, [=]<class V>(std::int64_t i, V& flat, V& moment) {
    const V g = load_as<V>(dy + i) * load_as<V>(scale + i);
    flat += g;
    moment += g * (load_as<V>(x + i) - middle - rest);
  });
  const double share = n == 0 ? 0.0 : 1.0 / static_cast<double>(n);
  const T slope = static_cast<T>(inv_std);
  const T offset = static_cast<T>(kCentered ? -inv_std * sums.a * share : 0.0);
  const T curve = static_cast<T>(-inv_std * inv_std * inv_std * sums.b * share);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const T d = dy[i];
    const T centered = x[i] - middle - rest;
    dx[i] = d * scale[i] * slope + centered * curve + offset;
    dscale[i] += d * centered * slope;
    if constexpr (kCentered) dbias[i] += d;
  }
}

template <class T, template <class> class Stats, bool kCentered>
void differentiate_piece(const NormRows& rows, const KernelArgs& args, std::int64_t piece) {
  const ParameterSums<T> sums(rows, args.workspace);
  const std::int64_t n = rows.length;
  double* const total = sums.totals + piece * 2 * n;
  T* const run = sums.runs + piece * 2 * n;
  std::fill_n(total, 2 * n, 0.0);
  std::fill_n(run, 2 * n, T{0});
  const std::int64_t pieces = ParameterSums<T>::pieces(rows);
  const std::int64_t last = rows.count * (piece + 1) / pieces;
  for (std::int64_t row = rows.count * piece / pieces, in_run = 1; row < last; ++row, ++in_run) {
    const T* const x = args.input<T>(1) + row * n;
    const Stats<T> stats(x, n, rows.epsilon);
    differentiate_row<T, kCentered>(args.input<T>(0) + row * n, x, args.input<T>(2), n,
                                    stats.center, stats.inv_std, args.output<T>() + row * n, run,
                                    run + n);
    if (in_run % ParameterSums<T>::kRowsPerRun == 0) flush(run, total, 2 * n);
  }
  flush(run, total, 2 * n);
}

template <class T>
void add_pieces(const NormRows& rows, const KernelArgs& args, int output, std::int64_t first,
                std::int64_t last) {
  const ParameterSums<T> sums(rows, args.workspace);
  T* const result = args.output<T>(output);
  for (std::int64_t i = first; i < last; ++i) {
    double total = 0;
    for (std::int64_t piece = 0; piece < ParameterSums<T>::pieces(rows); ++piece) {
      total += sums.totals[(piece * 2 + output - 1) * rows.length + i];
    }
    result[i] = static_cast<T>(total);
  }
}

template <template <class> class Stats, bool kCentered>
Kernel make_backward(KernelRequest& request) {
  const NormRows rows(request, 1);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    request.need_workspace(ParameterSums<T>::bytes(rows));
    const std::int64_t pieces = ParameterSums<T>::pieces(rows);
    const std::int64_t elements = std::max<std::int64_t>(1, rows.count / pieces * rows.length);
    const std::int64_t grain = kRowwiseGrain / elements + 1;
    kernel = [=](const KernelArgs& args) {
      parallel_for(pieces, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t piece = first; piece < last; ++piece) {
          differentiate_piece<T, Stats, kCentered>(rows, args, piece);
        }
      });
      parallel_for(rows.length, kRowwiseGrain / pieces, [&](std::int64_t first, std::int64_t last) {
        add_pieces<T>(rows, args, 1, first, last);
        if constexpr (kCentered) add_pieces<T>(rows, args, 2, first, last);
      });
    };
  });
  return kernel;
}

}  // namespace

void register_layer_norm_cpu(KernelRegistry& registry) {
  registry.add({.op = "LayerNormalization", .name = "plain", .make = make_forward<Moments>});
  registry.add({.op = "RMSNormalization", .name = "plain", .make = make_forward<RootMeanSquare>});
  registry.add({.op = "LayerNormGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_backward<Moments, true>});
  registry.add({.op = "RmsNormGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_backward<RootMeanSquare, false>});
}

}  // namespace graft
