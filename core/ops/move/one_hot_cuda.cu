#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/width.h"

namespace graft {
namespace {

/// indices: [outer, inner]; y: [outer, depth, inner]. Indices outside [-depth, depth) are nowhere
/// on.
template <class T, class Index>
struct OneHot {
  const Index* indices;
  const T* off_and_on;
  T* y;
  std::int64_t depth;
  std::int64_t inner;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / inner;
    const Index index = indices[row / depth * inner + i % inner];
    using Wide = decltype(Index{} + std::int64_t{});  // a depth may be more than 32 bits hold
    const bool is_within = index >= -static_cast<Wide>(depth) && index < static_cast<Wide>(depth);
    const auto whole = is_within ? static_cast<std::int64_t>(index) : depth;
    y[i] = off_and_on[(whole < 0 ? whole + depth : whole) == row % depth ? 1 : 0];
  }
};

Kernel make_one_hot(KernelRequest& request) {
  const Shape& shape = request.output().shape;
  if (shape.size() == 0) return [](const KernelArgs&) {};
  const int axis = normalize_axis(request.attributes().get_int("axis", -1), shape.rank(),
                                  request.node().label());
  Kernel kernel;
  visit_dtype(TypeList<std::int64_t, std::int32_t, float>{}, request.dtype(), [&]<class Index>() {
    visit_width(request.dtype(2), [&]<class T>() {
      kernel = [depth = shape[axis], inner = shape.size(axis + 1, shape.rank()),
                size = shape.size(),
                stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
        start_items(OneHot<T, Index>{args.input<Index>(0), args.input<T>(2), args.output<T>(),
                                     depth, inner},
                    size, stream);
      };
    });
  });
  return kernel;
}

}  // namespace

void register_one_hot_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "plain", {{"OneHot", make_one_hot}});
}

}  // namespace graft
