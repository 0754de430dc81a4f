#include "core/device/cuda/cuda_device.h"
#include "core/ops/kernels/index.h"
#include "core/ops/kernels/math_cuda.h"
#include "core/ops/kernels/width.h"
#include "core/ops/move/gather_layout.h"
#include "core/ops/move/scatter_cuda.h"
#include "core/ops/registry.h"

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
      slice += device_math::clamped_index(index, dims[i]) * strides[i];
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
  Kernel kernel;
  if (!fits(layout)) return kernel;
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

/// y takes the updates in. `updates`: which input they are; `begin(args)` gives y its first
/// elements.
template <class Begin>
Kernel scatter_kernel(KernelRequest& request, const TupleLayout& layout, int updates,
                      ScatterReduction reduction, Begin begin) {
  Kernel kernel;
  if (!fits(layout)) return kernel;
  request.need_workspace(KeyMemory::bytes(layout.tuples));
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    visit_index(request, 1, [&]<class Index>() {
      kernel = [=, find = SliceOf<Index>(layout), count = layout.tuples, slice = layout.slice,
                stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
        begin(args);
        const KeyMemory keys(args.workspace, count);
        SliceOf<Index> own = find;
        own.indices = args.input<Index>(1);
        start_links(own, keys, count, stream);
        const TakeUpdates<T> take{
            args.input<T>(updates), args.output<T>(), keys, count, slice, 0, reduction};
        start_updates(take, 1, stream);
      };
    });
  });
  return kernel;
}

Kernel make_gather_nd_grad(KernelRequest& request) {
  const Shape& dx = request.output().shape;
  if (dx.size() == 0) return [](const KernelArgs&) {};
  return scatter_kernel(
      request, layout_of(request, dx), 0, ScatterReduction::add,
      [bytes = bytes_of(request.dtype(), dx.size()), device = &as_cuda(request.device())](
          const KernelArgs& args) { device->fill(args.output<void>(), 0, bytes); });
}

Kernel make_scatter_nd(KernelRequest& request) {
  const Shape& data = request.shape();
  if (data.size() == 0) return [](const KernelArgs&) {};
  return scatter_kernel(request, TupleLayout(data, request.shape(1), 0), 2, reduction_of(request),
                        [bytes = bytes_of(request.dtype(), data.size()),
                         device = &as_cuda(request.device())](const KernelArgs& args) {
                          if (args.inputs[0] == args.outputs[0]) return;
                          device->copy_async(args.outputs[0], args.inputs[0], bytes);
                        });
}

}  // namespace

void register_gather_nd_cuda(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add(
        {.op = op, .domain = domain, .device = DeviceKind::cuda, .name = "plain", .make = make});
  };
  add("GatherND", "", make_gather_nd);
  add("GatherNDGrad", kInternalDomain, make_gather_nd_grad);
  add("ScatterND", "", make_scatter_nd);
}

}  // namespace graft
