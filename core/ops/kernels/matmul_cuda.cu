#include "core/ops/kernels/matmul_cuda.h"

#include "core/device/cuda/numbers.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/tiles_cuda.h"

namespace graft {
namespace {

/// Where one entry of the batch lies.
template <class T>
struct Entry {
  const T* a;
  const T* b;
  T* y;
};

/// A DeviceProduct and the memory of a call.
template <class T>
struct Problem {
  using Sum = typename Summed<T>::type;
  DeviceProduct p;
  const T* a_data;
  const T* b_data;
  const T* c;
  T* y;
  const T* rate;
  std::int64_t m = p.m;
  std::int64_t n = p.n;
  std::int64_t k = p.k;
  bool a_is_inner_contiguous = !p.transposes_a;
  bool b_is_inner_contiguous = p.transposes_b;

  __device__ Entry<T> entry(std::int64_t index) const {
    Entry<T> at{a_data, b_data, y + index * p.m * p.n};
    for (int axis = p.axes; axis-- > 0;) {
      at.a += index % p.dims[axis] * p.a_steps[axis];
      at.b += index % p.dims[axis] * p.b_steps[axis];
      index /= p.dims[axis];
    }
    return at;
  }
  __device__ Sum a(const Entry<T>& at, std::int64_t row, std::int64_t inner) const {
    return summand(at.a[a_is_inner_contiguous ? row * k + inner : inner * m + row]);
  }
  __device__ Sum b(const Entry<T>& at, std::int64_t inner, std::int64_t column) const {
    return summand(at.b[b_is_inner_contiguous ? column * k + inner : inner * n + column]);
  }
  __device__ void store(const Entry<T>& at, std::int64_t row, std::int64_t column, Sum sum) const {
    Sum alpha = static_cast<Sum>(p.alpha);
    if (rate != nullptr) alpha *= -summand(*rate);
    Sum result = alpha * sum;
    if (c != nullptr) {
      result += static_cast<Sum>(p.beta) * summand(c[row * p.c_row + column * p.c_column]);
    }
    set_sum(at.y[row * n + column], result);
  }
};

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
  start_tiles<typename Summed<T>::type>(Problem<T>{*this, a, b, c, y, rate}, batch, stream);
}

namespace {

struct WriteScales {
  const float* rate;
  float alpha;
  float beta;
  float* scales;
  __device__ void operator()(std::int64_t) const {
    scales[0] = -*rate * alpha;
    scales[1] = beta;
  }
};

}  // namespace

void write_scales(const float* rate, float alpha, float beta, float* scales, cudaStream_t stream) {
  start_items(WriteScales{rate, alpha, beta, scales}, 1, stream);
}

template void DeviceProduct::run<float>(const float*, const float*, const float*, float*,
                                        const float*, cudaStream_t) const;
template void DeviceProduct::run<double>(const double*, const double*, const double*, double*,
                                         const double*, cudaStream_t) const;
template void DeviceProduct::run<BFloat16>(const BFloat16*, const BFloat16*, const BFloat16*,
                                           BFloat16*, const BFloat16*, cudaStream_t) const;

}  // namespace graft
