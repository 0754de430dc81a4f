#include "core/ops/kernels/index.h"
#include "core/ops/kernels/width.h"
#include "core/ops/move/gather_layout.h"
#include "core/ops/move/scatter_cuda.h"

namespace graft {
namespace {

/// Which slice of the data a tuple addresses.
template <class Index>
struct SliceOf {
  static constexpr int kMostDepth = 8;
  const Index* indices = nullptr;
  int depth;
  std::int64_t batch_tuples;
  std::int64_t batch_slices;
  std::int64_t dims[kMostDepth] = {};
  std::int64_t strides[kMostDepth] = {};  ///< in slices

  explicit SliceOf(const TupleLayout& layout)
      : depth(static_cast<int>(layout.dims.size())),
        batch_tuples(layout.batch_tuples),
        batch_slices(layout.batch_size / layout.slice) {
    for (std::size_t i = 0; i < layout.dims.size(); ++i) {
      dims[i] = layout.dims[i];
      strides[i] = layout.strides[i] / layout.slice;
    }
  }
  __device__ std::int64_t operator()(std::int64_t tuple) const {
    std::int64_t slice = tuple / batch_tuples * batch_slices;
    for (int i = 0; i < depth; ++i) {
      const auto index = static_cast<std::int64_t>(indices[tuple * depth + i]);
      slice += clamp_index(index, dims[i]) * strides[i];
    }
    return slice;
  }
};

template <class T, class Index>
struct GatherSlices {
  SliceOf<Index> find;
  const T* data;
  T* y;
  std::int64_t slice;
  __device__ void operator()(std::int64_t i) const {
    y[i] = data[find(i / slice) * slice + i % slice];
  }
};

bool fits(const TupleLayout& layout) {
  return layout.dims.size() <= SliceOf<std::int64_t>::kMostDepth;
}

TupleLayout layout_of(const KernelRequest& request, const Shape& data) {
  const auto batch_dims = static_cast<int>(request.attributes().get_int("batch_dims", 0));
  return {data, request.shape(1), batch_dims};
}

Kernel make_gather_nd(KernelRequest& request) {
  const std::int64_t size = request.output().shape.size();
  if (size == 0) return [](const KernelArgs&) {};
  const TupleLayout layout = layout_of(request, request.shape());
  if (!fits(layout)) return {};
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    visit_index(request, 1, [&]<class Index>() {
      kernel = [size, find = SliceOf<Index>(layout), slice = layout.slice,
                stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
        GatherSlices<T, Index> gather{find, args.input<T>(0), args.output<T>(), slice};
        gather.find.indices = args.input<Index>(1);
        start_items(gather, size, stream);
      };
    });
  });
  return kernel;
}

template <ScatterKind kind>
Kernel make_scatter_nd(KernelRequest& request) {
  const Shape& data = request.output().shape;
  if (data.size() == 0) return [](const KernelArgs&) {};
  const TupleLayout layout = layout_of(request, data);
  if (!fits(layout)) return {};
  return scatter_kernel(request, {layout.tuples, layout.slice}, kind,
                        [&]<class Index>() { return SliceOf<Index>(layout); });
}

}  // namespace

void register_gather_nd_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "plain",
                   {{"GatherND", make_gather_nd},
                    {"GatherNDGrad", make_scatter_nd<ScatterKind::gradient>, kInternalDomain},
                    {"ScatterND", make_scatter_nd<ScatterKind::scatter>}});
}

}  // namespace graft
