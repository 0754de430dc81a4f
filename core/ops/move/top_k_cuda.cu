#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/rows_cuda.h"

namespace graft {
namespace {

/// Which of two elements of a row comes first: the larger or the smaller one, NaN being the largest
/// of all; of equal ones the first.
template <class T>
struct Before {
  const T* values;
  std::int64_t step;
  bool largest;

  __device__ bool operator()(std::int64_t a, std::int64_t b) const {
    const T x = values[a * step];
    const T y = values[b * step];
    if (is_less(x, y)) return !largest;
    if (is_less(y, x)) return largest;
    return a < b;
  }

 private:
  static __device__ bool is_less(T x, T y) {
    if (x != x) return false;
    return y != y || x < y;
  }
};

/// x: [outer, dim, inner] to [outer, k, inner]. Each pass over a row finds the first element behind
/// those that were found: no memory, and k is small where a net chooses.
template <class T>
struct TopK {
  const T* x;
  T* values;              ///< null: nobody reads them
  std::int64_t* indices;  ///< null likewise
  std::int64_t dim;
  std::int64_t inner;
  std::int64_t k;
  bool largest;

  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t outer = row / inner;
    const T* const from = x + outer * dim * inner + row % inner;
    const Before<T> before{from, inner, largest};
    const auto first_of = [&](std::int64_t a, std::int64_t b) {
      return b < 0 || (a >= 0 && before(a, b)) ? a : b;
    };
    std::int64_t found = -1;
    for (std::int64_t place = 0; place < k; ++place) {
      std::int64_t next = -1;
      for (std::int64_t i = team.rank; i < dim; i += Team::size) {
        if (found < 0 || before(found, i)) next = first_of(next, i);
      }
      found = team.join(next, first_of);
      if (team.rank != 0) continue;
      const std::int64_t to = (outer * k + place) * inner + row % inner;
      if (values != nullptr) values[to] = from[found * inner];
      if (indices != nullptr) indices[to] = found;
    }
  }
};

/// Beyond the most, sorting on the CPU is faster.
Kernel make_top_k(KernelRequest& request) {
  constexpr std::int64_t kMost = 1024;
  const Shape& x = request.shape();
  const Shape& y = request.has_output(0) ? request.output(0).shape : request.output(1).shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const int axis =
      normalize_axis(request.attributes().get_int("axis", -1), x.rank(), request.node().label());
  if (y[axis] > kMost) return {};
  using Types = TypeList<float, double, std::int32_t, std::int64_t>;
  const bool largest = request.attributes().get_int("largest", 1) != 0;
  return cuda_kernel(
      Types{}, request,
      [dim = x[axis], k = y[axis], inner = x.size(axis + 1, x.rank()), rows = y.size() / y[axis],
       largest, has_values = request.has_output(0),
       has_indices = request.has_output(1)]<class T>(const KernelArgs& args, cudaStream_t stream) {
        const TopK<T> body{args.input<T>(0),
                           has_values ? args.output<T>(0) : nullptr,
                           has_indices ? args.output<std::int64_t>(1) : nullptr,
                           dim,
                           inner,
                           k,
                           largest};
        start_rows(body, rows, dim, inner == 1, stream);
      });
}

}  // namespace

void register_top_k_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "rows", {{"TopK", make_top_k}});
}

}  // namespace graft
