// Kernels that reduce rows: a body is written once, and runs with a team of one thread, of a warp
// or of a block a row. Sums are joined in an order that the team's size alone decides.
#pragma once

#include "core/device/cuda/grid.h"

namespace graft {

struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

/// NaN wins.
struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

/// NaN wins.
struct Smaller {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

/// A thread a row. Each team offers: `rank`, the thread's place among `size`; join(x, op), which
/// gives all of them op over the x of all; and sync(), behind which memory that others of the team
/// wrote can be read.
struct ThreadTeam {
  static constexpr unsigned size = 1;
  unsigned rank = 0;

  template <class T, class Op>
  __device__ T join(T x, Op) const {
    return x;
  }
  __device__ void sync() const {}
  static __device__ std::int64_t first_row() {
    return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  }
  static __device__ std::int64_t row_step() {
    return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  }
  static constexpr unsigned kRowsPerBlock = kBlockThreads;
};

struct WarpTeam {
  static constexpr unsigned size = 32;
  unsigned rank = threadIdx.x % size;

  template <class T, class Op>
  __device__ T join(T x, Op op) const {
    for (int distance = size / 2; distance > 0; distance /= 2) {
      x = op(x, __shfl_xor_sync(~0U, x, distance));
    }
    return x;
  }
  __device__ void sync() const { __syncwarp(); }
  static __device__ std::int64_t first_row() {
    return static_cast<std::int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / size;
  }
  static __device__ std::int64_t row_step() {
    return static_cast<std::int64_t>(gridDim.x) * kRowsPerBlock;
  }
  static constexpr unsigned kRowsPerBlock = kBlockThreads / size;
};

struct BlockTeam {
  static constexpr unsigned size = kBlockThreads;
  unsigned rank = threadIdx.x;

  template <class T, class Op>
  __device__ T join(T x, Op op) const {
    constexpr unsigned kWarps = size / WarpTeam::size;
    __shared__ T of_warps[kWarps];
    x = WarpTeam{}.join(x, op);
    if (rank % WarpTeam::size == 0) of_warps[rank / WarpTeam::size] = x;
    __syncthreads();
    T all = of_warps[0];
    for (unsigned i = 1; i < kWarps; ++i) all = op(all, of_warps[i]);
    __syncthreads();  // the next call uses the same memory
    return all;
  }
  __device__ void sync() const { __syncthreads(); }
  static __device__ std::int64_t first_row() { return blockIdx.x; }
  static __device__ std::int64_t row_step() { return gridDim.x; }
  static constexpr unsigned kRowsPerBlock = 1;
};

/// The sum of term(i) for i in [0, count) over the team, in f64.
template <class Team, class Term>
__device__ double team_sum(const Team& team, std::int64_t count, Term term) {
  double sum = 0.0;
  for (std::int64_t i = team.rank; i < count; i += Team::size) sum += term(i);
  return team.join(sum, Add{});
}

template <class Team, class Body>
__global__ void __launch_bounds__(kBlockThreads, 2)  // else nvcc spills, to fit more blocks
    run_rows(const __grid_constant__ Body body, std::int64_t rows) {
  for (std::int64_t row = Team::first_row(); row < rows; row += Team::row_step()) {
    body(row, Team{});
  }
}

template <class Team, class Body>
void start_rows_by(const Body& body, std::int64_t rows, cudaStream_t stream) {
  if (rows == 0) return;
  launch(run_rows<Team, Body>, blocks_for(rows, Team::kRowsPerBlock), dim3(kBlockThreads), 0,
         stream, body, rows);
}

/// Calls body(row, team) for each row on the stream; Body is as for `start_items`, with a template
/// over Team. `length`: what a row has to sum. `is_contiguous`: along the row; else neighbouring
/// rows lie side by side, and a thread each reads them together.
template <class Body>
void start_rows(const Body& body, std::int64_t rows, std::int64_t length, bool is_contiguous,
                cudaStream_t stream) {
  constexpr std::int64_t kLongForAWarp = 1024;
  if (!is_contiguous) {
    start_rows_by<ThreadTeam>(body, rows, stream);
  } else if (length <= kLongForAWarp) {
    start_rows_by<WarpTeam>(body, rows, stream);
  } else {
    start_rows_by<BlockTeam>(body, rows, stream);
  }
}

}  // namespace graft
