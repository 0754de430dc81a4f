// Products of matrices by tiles: a block makes 64 x 64 elements, a thread 4 x 4 of them, and slices
// of 16 of both operands go through shared memory. What the operands are, a problem says: matrices,
// or the windows of a convolution. Each element is summed in the order of its inner dim.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/device/cuda/grid.h"

namespace graft {

namespace tiles {

inline constexpr int kTile = 64;
inline constexpr int kSlice = 16;
inline constexpr int kEach = 4;              // rows, and columns, of a thread
inline constexpr int kSide = kTile / kEach;  // threads along a side of the tile
static_assert(kSide * kSide == static_cast<int>(kBlockThreads));

/// slice[i][j] = load(first + j, start + i), 0 outside of count x inner. Neighbouring threads take
/// neighbours along the inner dim, or along the other one: whichever lie side by side.
template <class T, class Load>
__device__ void load_slice(bool is_inner_contiguous, std::int64_t first, std::int64_t count,
                           std::int64_t start, std::int64_t inner, T (&slice)[kSlice][kTile + 1],
                           Load load) {
  for (int at = static_cast<int>(threadIdx.x); at < kTile * kSlice;
       at += static_cast<int>(kBlockThreads)) {
    const int i = is_inner_contiguous ? at % kSlice : at / kTile;
    const int j = is_inner_contiguous ? at / kSlice : at % kTile;
    const bool is_inside = first + j < count && start + i < inner;
    slice[i][j] = is_inside ? load(first + j, start + i) : T{0};
  }
}

/// sums[r][c] += a[r] b[c], of elements kSide apart.
template <class T>
__device__ void add_products(const T* a, const T* b, T (&sums)[kEach][kEach]) {
  const T a_own[kEach] = {a[0], a[kSide], a[2 * kSide], a[3 * kSide]};
  const T b_own[kEach] = {b[0], b[kSide], b[2 * kSide], b[3 * kSide]};
  for (int r = 0; r < kEach; ++r) {
    for (int c = 0; c < kEach; ++c) sums[r][c] += a_own[r] * b_own[c];
  }
}

/// Calls body(r, c) for each sum of a thread, with constants: a loop that nvcc does not unroll
/// would keep the sums out of registers.
template <class Body>
__device__ void for_each_sum(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (body(std::integral_constant<int, i / kEach>(), std::integral_constant<int, i % kEach>()), ...);
  }
  (std::make_integer_sequence<int, kEach * kEach>());
}

__host__ __device__ inline std::int64_t count(std::int64_t size) {
  return (size + kTile - 1) / kTile;
}

/// The launch bounds: else nvcc spills, for the sake of a third block.
template <class T, class Problem>
__global__ void __launch_bounds__(kBlockThreads, 2)
    multiply(const __grid_constant__ Problem p, std::int64_t all) {
  __shared__ T a_slice[kSlice][kTile + 1];
  __shared__ T b_slice[kSlice][kTile + 1];
  const int row = static_cast<int>(threadIdx.x) / kSide;
  const int column = static_cast<int>(threadIdx.x) % kSide;
  const std::int64_t across = count(p.n);
  const std::int64_t each = across * count(p.m);
  for (std::int64_t tile = blockIdx.x; tile < all; tile += gridDim.x) {
    const auto entry = p.entry(tile / each);
    const std::int64_t first_row = tile % each / across * kTile;
    const std::int64_t first_column = tile % each % across * kTile;
    T sums[kEach][kEach] = {};
    for (std::int64_t start = 0; start < p.k; start += kSlice) {
      load_slice(p.a_is_inner_contiguous, first_row, p.m, start, p.k, a_slice,
                 [&](std::int64_t r, std::int64_t i) { return p.a(entry, r, i); });
      load_slice(p.b_is_inner_contiguous, first_column, p.n, start, p.k, b_slice,
                 [&](std::int64_t c, std::int64_t i) { return p.b(entry, i, c); });
      __syncthreads();
      for (int i = 0; i < kSlice; ++i) add_products(a_slice[i] + row, b_slice[i] + column, sums);
      __syncthreads();  // the next slices take the same memory
    }
    for_each_sum([&](auto i, auto j) {
      const std::int64_t r = first_row + row + i * kSide;
      const std::int64_t c = first_column + column + j * kSide;
      if (r < p.m && c < p.n) p.store(entry, r, c, sums[i][j]);
    });
  }
}

}  // namespace tiles

/// Makes all products of a problem on the stream. `entries`: how many. A Problem is a struct of at
/// most 4 KB with the sizes m, n and k of each product; entry(index), which gives what the others
/// need to know of one; a(entry, row, inner) and b(entry, inner, column), elements of the operands;
/// whether those lie side by side along the inner dim; and store(entry, row, column, sum).
template <class T, class Problem>
void start_tiles(const Problem& problem, std::int64_t entries, cudaStream_t stream) {
  const std::int64_t all = entries * tiles::count(problem.m) * tiles::count(problem.n);
  if (all == 0) return;
  launch(tiles::multiply<T, Problem>, blocks_for(all, 1), dim3(kBlockThreads), 0, stream, problem,
         all);
}

}  // namespace graft
