// Reductions in a fixed order. Few outputs of long rows: a block each, whose threads add up what
// they have through shared memory. Else a thread an output, so that neighbours read neighbours;
// where that were too few threads, several pieces an output, joined in a second pass. No atomics:
// their order would change from run to run.
#include <algorithm>
#include <cstdint>

#include "core/device/cuda/grid.h"
#include "core/device/cuda/numbers.h"
#include "core/ops/reduce/reduce_cuda.h"

namespace graft {
namespace {

/// What is added to a total: some elements change before. `shift` is the largest element.
__device__ double mapped(ReductionKind reduction, double x, double shift) {
  switch (reduction) {
    case ReductionKind::l1:
      return fabs(x);
    case ReductionKind::l2:
    case ReductionKind::sum_square:
      return x * x;
    case ReductionKind::log_sum_exp:
      return exp(x - shift);
    default:
      return x;
  }
}

__device__ double start_of(ReductionKind reduction) {
  switch (reduction) {
    case ReductionKind::product:
      return 1.0;
    case ReductionKind::largest:
      return -HUGE_VAL;
    case ReductionKind::smallest:
      return HUGE_VAL;
    default:
      return 0.0;
  }
}

/// NaN wins in extremes.
__device__ double joined(ReductionKind reduction, double a, double b) {
  switch (reduction) {
    case ReductionKind::product:
      return a * b;
    case ReductionKind::largest:
      return a > b || a != a ? a : b;
    case ReductionKind::smallest:
      return a < b || a != a ? a : b;
    default:
      return a + b;
  }
}

__device__ double finished(ReductionKind reduction, double total, std::int64_t length,
                           double shift) {
  switch (reduction) {
    case ReductionKind::mean:
      return total / static_cast<double>(length);
    case ReductionKind::l2:
      return sqrt(total);
    case ReductionKind::log_sum:
      return log(total);
    case ReductionKind::log_sum_exp:
      return log(total) + shift;
    default:
      return total;
  }
}

/// Infinite largest elements would make NaN of what they are subtracted from.
__device__ double finite_or_zero(double x) {
  return x - x == 0.0 ? x : 0.0;
}

__device__ std::int64_t offset(const DeviceAxes& axes, std::int64_t index) {
  std::int64_t at = 0;
  for (int k = axes.count; k-- > 0;) {
    const std::int64_t outer = index / axes.dims[k];
    at += (index - outer * axes.dims[k]) * axes.strides[k];
    index = outer;
  }
  return at;
}

template <class T>
__device__ void set_total(T& y, double total) {
  set_sum(y, static_cast<typename Summed<T>::type>(total));
}

/// Every step-th position of [first, last) of the reduced length.
template <class T>
__device__ double reduce_part(const DeviceReduction& r, const T* x, std::int64_t first,
                              std::int64_t last, std::int64_t step, double shift) {
  double total = start_of(r.reduction);
  for (std::int64_t i = first; i < last; i += step) {
    const double value = mapped(r.reduction, summand(x[offset(r.reduced, i)]), shift);
    total = joined(r.reduction, total, value);
  }
  return total;
}

template <class T>
__device__ double shift_of(const DeviceReduction& r, const T* y, std::int64_t i) {
  return r.reduction == ReductionKind::log_sum_exp ? finite_or_zero(summand(y[i])) : 0.0;
}

template <class T>
__global__ void reduce_by_blocks(const __grid_constant__ DeviceReduction r, const T* x, T* y) {
  __shared__ double totals[kBlockThreads];
  for (std::int64_t i = blockIdx.x; i < r.kept.size; i += gridDim.x) {
    const double shift = shift_of(r, y, i);
    totals[threadIdx.x] =
        reduce_part(r, x + offset(r.kept, i), threadIdx.x, r.reduced.size, kBlockThreads, shift);
    __syncthreads();
    for (unsigned half = kBlockThreads / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) {
        totals[threadIdx.x] = joined(r.reduction, totals[threadIdx.x], totals[threadIdx.x + half]);
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      set_total(y[i], finished(r.reduction, totals[0], r.reduced.size, shift));
    }
    __syncthreads();  // the next output uses the same memory
  }
}

/// `pieces`: a total a piece and output, or null when there is one piece, which is finished at
/// once.
template <class T>
__global__ void reduce_by_threads(const __grid_constant__ DeviceReduction r, const T* x, T* y,
                                  double* pieces) {
  for_each_item(r.kept.size * r.splits, [&](std::int64_t item) {
    const std::int64_t piece = item / r.kept.size;
    const std::int64_t i = item - piece * r.kept.size;
    const double shift = shift_of(r, y, i);
    const double total = reduce_part(r, x + offset(r.kept, i), piece * r.reduced.size / r.splits,
                                     (piece + 1) * r.reduced.size / r.splits, 1, shift);
    if (pieces != nullptr) {
      pieces[item] = total;
    } else {
      set_total(y[i], finished(r.reduction, total, r.reduced.size, shift));
    }
  });
}

template <class T>
__global__ void join_pieces(const __grid_constant__ DeviceReduction r, const double* pieces, T* y) {
  for_each_item(r.kept.size, [&](std::int64_t i) {
    double total = start_of(r.reduction);
    for (std::int64_t piece = 0; piece < r.splits; ++piece) {
      total = joined(r.reduction, total, pieces[piece * r.kept.size + i]);
    }
    set_total(y[i], finished(r.reduction, total, r.reduced.size, shift_of(r, y, i)));
  });
}

template <class T>
void start(const DeviceReduction& r, const T* x, T* y, double* workspace, cudaStream_t stream) {
  if (r.by_blocks) {
    const dim3 blocks = blocks_for(r.kept.size, 1);
    return launch(reduce_by_blocks<T>, blocks, dim3(kBlockThreads), 0, stream, r, x, y);
  }
  double* const pieces = r.splits > 1 ? workspace : nullptr;
  launch(reduce_by_threads<T>, blocks_for(r.kept.size * r.splits), dim3(kBlockThreads), 0, stream,
         r, x, y, pieces);
  if (pieces != nullptr) {
    launch(join_pieces<T>, blocks_for(r.kept.size), dim3(kBlockThreads), 0, stream, r, pieces, y);
  }
}

}  // namespace

void DeviceReduction::choose() {
  constexpr std::int64_t kLong = 128;
  constexpr std::int64_t kEnoughThreads = 65536;
  const bool is_row = reduced.count > 0 && reduced.strides[reduced.count - 1] == 1;
  by_blocks = is_row && reduced.size >= kLong;
  splits = 1;
  if (!by_blocks && kept.size > 0 && kept.size < kEnoughThreads) {
    splits = std::clamp<std::int64_t>(std::min(reduced.size / kLong, kEnoughThreads / kept.size), 1,
                                      256);
  }
}

std::size_t DeviceReduction::workspace_bytes() const {
  return splits > 1 ? static_cast<std::size_t>(splits * kept.size) * sizeof(double) : 0;
}

void DeviceReduction::run(const void* x, void* y, void* workspace, cudaStream_t stream) const {
  if (kept.size == 0) return;
  auto* const pieces = static_cast<double*>(workspace);
  DeviceReduction pass = *this;
  if (reduction == ReductionKind::log_sum_exp) {  // the largest elements go to the output first
    pass.reduction = ReductionKind::largest;
    pass.run(x, y, workspace, stream);
    pass.reduction = reduction;
  }
  visit_dtype(TypeList<float, double, BFloat16>{}, dtype, [&]<class T>() {
    start(pass, static_cast<const T*>(x), static_cast<T*>(y), pieces, stream);
  });
}

}  // namespace graft
