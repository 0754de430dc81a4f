// Products by tiles: a block makes 64 x 64 elements of y, a thread 4 x 4 of them, and slices of 16
// of both operands go through shared memory. Each element is summed in the order of k.
#include "core/ops/kernels/matmul_cuda.h"

#include "core/device/cuda/grid.h"

namespace graft {
namespace {

constexpr int kTile = 64;
constexpr int kSlice = 16;
constexpr int kEach = 4;              // rows, and columns, of a thread
constexpr int kSide = kTile / kEach;  // threads along a side of the tile
static_assert(kSide * kSide == static_cast<int>(kBlockThreads));

template <class T>
struct Operands {
  const T* a;
  const T* b;
  const T* c;
  T* y;
  const T* rate;
};

/// Where a tile lies.
struct TilePlace {
  std::int64_t row;
  std::int64_t column;
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t y;
};

__device__ std::int64_t tiles(std::int64_t size) {
  return (size + kTile - 1) / kTile;
}

__device__ TilePlace place_of(const DeviceProduct& p, std::int64_t tile) {
  const std::int64_t across = tiles(p.n);
  const std::int64_t each = across * tiles(p.m);
  std::int64_t entry = tile / each;
  const std::int64_t within = tile % each;
  TilePlace at{
      .row = within / across * kTile, .column = within % across * kTile, .y = entry * p.m * p.ldy};
  for (int axis = p.axes; axis-- > 0;) {
    at.a += entry % p.dims[axis] * p.a_steps[axis];
    at.b += entry % p.dims[axis] * p.b_steps[axis];
    entry /= p.dims[axis];
  }
  return at;
}

/// slice[i][j] = x'[first + j][start + i] for j < kTile, i < kSlice, 0 outside. `inner`: x' stands
/// with neighbours along its inner dim, of k, side by side; threads then walk along that.
template <class T>
__device__ void load_slice(const T* x, std::int64_t ld, bool is_inner_contiguous,
                           std::int64_t first, std::int64_t count, std::int64_t start,
                           std::int64_t k, T (&slice)[kSlice][kTile + 1]) {
  for (int at = static_cast<int>(threadIdx.x); at < kTile * kSlice;
       at += static_cast<int>(kBlockThreads)) {
    const int i = is_inner_contiguous ? at % kSlice : at / kTile;
    const int j = is_inner_contiguous ? at / kSlice : at % kTile;
    const std::int64_t outer = first + j;
    const std::int64_t inner = start + i;
    const bool is_inside = outer < count && inner < k;
    const std::int64_t offset = is_inner_contiguous ? outer * ld + inner : inner * ld + outer;
    slice[i][j] = is_inside ? x[offset] : T{0};
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

template <class T>
__device__ void store_tile(const DeviceProduct& p, const Operands<T>& x, const TilePlace& at,
                           const T (&sums)[kEach][kEach]) {
  const int row = static_cast<int>(threadIdx.x) / kSide;
  const int column = static_cast<int>(threadIdx.x) % kSide;
  T alpha = static_cast<T>(p.alpha);
  if (x.rate != nullptr) alpha *= -*x.rate;
  const T beta = static_cast<T>(p.beta);
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t r = at.row + row + i * kSide;
      const std::int64_t c = at.column + column + j * kSide;
      if (r >= p.m || c >= p.n) continue;
      T result = alpha * sums[i][j];
      if (x.c != nullptr) result += beta * x.c[r * p.c_row + c * p.c_column];
      x.y[at.y + r * p.ldy + c] = result;
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kBlockThreads,
                                  2)  // else nvcc spills, for the sake of a third block
    multiply(const __grid_constant__ DeviceProduct p, const Operands<T> x, std::int64_t count) {
  __shared__ T a_slice[kSlice][kTile + 1];
  __shared__ T b_slice[kSlice][kTile + 1];
  const int row = static_cast<int>(threadIdx.x) / kSide;
  const int column = static_cast<int>(threadIdx.x) % kSide;
  for (std::int64_t tile = blockIdx.x; tile < count; tile += gridDim.x) {
    const TilePlace at = place_of(p, tile);
    T sums[kEach][kEach] = {};
    for (std::int64_t start = 0; start < p.k; start += kSlice) {
      load_slice(x.a + at.a, p.lda, !p.transposes_a, at.row, p.m, start, p.k, a_slice);
      load_slice(x.b + at.b, p.ldb, p.transposes_b, at.column, p.n, start, p.k, b_slice);
      __syncthreads();
      for (int i = 0; i < kSlice; ++i) add_products(a_slice[i] + row, b_slice[i] + column, sums);
      __syncthreads();  // the next slices take the same memory
    }
    store_tile(p, x, at, sums);
  }
}

}  // namespace

bool DeviceProduct::fits(const MatMulProblem& problem) {
  return problem.batch.size() <= kMostAxes;
}

DeviceProduct::DeviceProduct(const MatMulProblem& problem)
    : m(problem.m),
      n(problem.n),
      k(problem.k),
      transposes_a(problem.transposes_a),
      transposes_b(problem.transposes_b),
      alpha(static_cast<double>(problem.alpha)),
      beta(static_cast<double>(problem.beta)),
      lda(problem.transposes_a ? problem.m : problem.k),
      ldb(problem.transposes_b ? problem.k : problem.n),
      ldy(problem.n),
      axes(static_cast<int>(problem.batch.size())),
      batch(problem.batch_size()) {
  for (int axis = 0; axis < axes; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    dims[axis] = problem.batch[i];
    a_steps[axis] = problem.a_steps[i];
    b_steps[axis] = problem.b_steps[i];
  }
}

template <class T>
void DeviceProduct::run(const T* a, const T* b, const T* c, T* y, const T* rate,
                        cudaStream_t stream) const {
  const auto count = [](std::int64_t size) { return (size + kTile - 1) / kTile; };
  const std::int64_t all = batch * count(m) * count(n);
  if (all == 0) return;
  launch(multiply<T>, blocks_for(all, 1), dim3(kBlockThreads), 0, stream, *this,
         Operands<T>{a, b, c, y, rate}, all);
}

template void DeviceProduct::run<float>(const float*, const float*, const float*, float*,
                                        const float*, cudaStream_t) const;
template void DeviceProduct::run<double>(const double*, const double*, const double*, double*,
                                         const double*, cudaStream_t) const;

}  // namespace graft
