#include <algorithm>
#include <cstring>

#include "core/base/machine.h"
#include "core/ops/kernels/index.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/move/gather.h"
#include "core/ops/move/gather_layout.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Where the slice that the tuple addresses begins.
std::int64_t offset_of(const TupleLayout& layout, std::int64_t tuple,
                       const IndexInput::Values& indices) {
  std::int64_t result = tuple / layout.batch_tuples * layout.batch_size;
  std::int64_t own = tuple * static_cast<std::int64_t>(layout.dims.size());
  for (std::size_t i = 0; i < layout.dims.size(); ++i) {
    const std::int64_t index = clamp_index(indices[own++], layout.dims[i]);
    result += index * layout.strides[i];
  }
  return result;
}

int batch_dims_of(const KernelRequest& request) {
  return static_cast<int>(request.attributes().get_int("batch_dims", 0));
}

Kernel make_gather_nd(KernelRequest& request) {
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  const TupleLayout layout(request.shape(), request.shape(1), batch_dims_of(request));
  const std::int64_t width = width_of(request.dtype());
  if (width == 0) return {};
  return [layout, width, index = IndexInput(request, 1)](const KernelArgs& args) {
    const IndexInput::Values indices = index.of(args);
    const std::int64_t slice = layout.slice * width;
    parallel_for(layout.tuples, kElementwiseGrain / layout.slice + 1,
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t i = first; i < last; ++i) {
                     const std::int64_t from = offset_of(layout, i, indices) * width;
                     std::memcpy(args.output<std::byte>() + i * slice,
                                 args.input<std::byte>(0) + from, static_cast<std::size_t>(slice));
                   }
                 });
  };
}

/// y starts as `start(first, last)` writes its elements; then slices are combined into it in the
/// order of the tuples. Each thread owns some slices of y and passes by the updates of others, so
/// the bits are the same for any number of threads.
template <class T, class Start>
void scatter(const TupleLayout& layout, ScatterReduction reduction,
             const IndexInput::Values& indices, const T* updates, T* y, std::int64_t size,
             Start&& start) {
  const std::int64_t slice = layout.slice;
  parallel_for(size / slice, kElementwiseGrain / slice + 1,
               [&](std::int64_t first, std::int64_t last) {
                 start(first * slice, last * slice);
                 for (std::int64_t i = 0; i < layout.tuples; ++i) {
                   const std::int64_t offset = offset_of(layout, i, indices);
                   if (offset < first * slice || offset >= last * slice) continue;
                   T* const place = y + offset;
                   const T* const update = updates + i * slice;
                   for (std::int64_t j = 0; j < slice; ++j)
                     place[j] = combine(reduction, place[j], update[j]);
                 }
               });
}

Kernel make_gather_nd_grad(KernelRequest& request) {
  const Shape& dx = request.output().shape;
  if (dx.size() == 0) return [](const KernelArgs&) {};
  const TupleLayout layout(dx, request.shape(1), batch_dims_of(request));
  const IndexInput index(request, 1);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [layout, index, size = dx.size()](const KernelArgs& args) {
      T* const y = args.output<T>();
      scatter(layout, ScatterReduction::add, index.of(args), args.input<T>(0), y, size,
              [y](std::int64_t first, std::int64_t last) { std::fill(y + first, y + last, T{}); });
    };
  });
  return kernel;
}

Kernel make_scatter_nd(KernelRequest& request) {
  const Shape& data = request.shape();
  if (data.size() == 0) return [](const KernelArgs&) {};
  const TupleLayout layout(data, request.shape(1), 0);
  const ScatterReduction reduction = reduction_of(request);
  const IndexInput index(request, 1);
  Kernel kernel;
  visit_kernel_dtype(NumericTypes{}, scattered_type(request), [&]<class T>() {
    kernel = [layout, index, reduction, size = data.size()](const KernelArgs& args) {
      const T* const x = args.input<T>(0);
      T* const y = args.output<T>();
      scatter(layout, reduction, index.of(args), args.input<T>(2), y, size,
              [x, y](std::int64_t first, std::int64_t last) {
                if (x != y) std::copy(x + first, x + last, y + first);
              });
    };
  });
  return kernel;
}

}  // namespace

void register_gather_nd_cpu(KernelRegistry& registry) {
  registry.add({.op = "GatherND", .name = "plain", .make = make_gather_nd});
  registry.add({.op = "GatherNDGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_gather_nd_grad});
  registry.add({.op = "ScatterND", .name = "plain", .make = make_scatter_nd});
}

}  // namespace graft
