#include "core/ops/kernels/index.h"
#include "core/ops/kernels/width.h"
#include "core/ops/move/gather_layout.h"
#include "core/ops/move/scatter_cuda.h"

namespace graft {
namespace {

int axis_of(const KernelRequest& request, int rank) {
  return normalize_axis(request.attributes().get_int("axis", 0), rank, request.node().label());
}

template <class T, class Index>
struct Gather {
  const T* data;
  const Index* indices;
  T* y;
  GatherLayout layout;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / layout.inner;
    const auto index = static_cast<std::int64_t>(indices[row % layout.count]);
    const std::int64_t from = row / layout.count * layout.dim + clamp_index(index, layout.dim);
    y[i] = data[from * layout.inner + i % layout.inner];
  }
};

Kernel make_gather(KernelRequest& request) {
  const Shape& data = request.shape();
  const std::int64_t size = request.output().shape.size();
  if (size == 0) return [](const KernelArgs&) {};
  const GatherLayout layout(data, axis_of(request, data.rank()), request.shape(1));
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    visit_index(request, 1, [&]<class Index>() {
      kernel = [=, stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
        start_items(
            Gather<T, Index>{args.input<T>(0), args.input<Index>(1), args.output<T>(), layout},
            size, stream);
      };
    });
  });
  return kernel;
}

template <class Index>
struct RowKey {
  const Index* indices;
  std::int64_t dim;
  __device__ std::int64_t operator()(std::int64_t i) const {
    return clamp_index(static_cast<std::int64_t>(indices[i]), dim);
  }
};

Kernel make_gather_grad(KernelRequest& request) {
  const Shape& dx = request.output().shape;
  if (dx.size() == 0) return [](const KernelArgs&) {};
  const auto axis = static_cast<int>(request.attributes().get_int("axis", 0));
  const GatherLayout by(dx, axis, request.shape(1));
  return scatter_kernel(request, {by.count, by.inner, by.outer, by.dim * by.inner},
                        ScatterKind::gradient, [&]<class Index>() {
                          return RowKey<Index>{nullptr, by.dim};
                        });
}

/// Maps elements of a tensor of indices to elements of the data: the same place but for one axis.
template <class Index>
struct ElementMap {
  static constexpr int kMostAxes = 8;
  const Index* indices = nullptr;
  int rank;
  int axis;
  std::int64_t dim;
  std::int64_t dims[kMostAxes] = {};
  std::int64_t strides[kMostAxes] = {};

  ElementMap(const Shape& shape, const Shape& data, int at)
      : rank(shape.rank()), axis(at), dim(data[at]) {
    const std::vector<std::int64_t> steps = data.strides();
    for (int i = 0; i < rank; ++i) {
      dims[i] = shape[i];
      strides[i] = steps[static_cast<std::size_t>(i)];
    }
  }
  __device__ std::int64_t operator()(std::int64_t i) const {
    const std::int64_t index = clamp_index(static_cast<std::int64_t>(indices[i]), dim);
    std::int64_t offset = index * strides[axis];
    for (int k = rank; k-- > 0;) {
      if (k != axis) offset += i % dims[k] * strides[k];
      i /= dims[k];
    }
    return offset;
  }
};

template <class T, class Index>
struct GatherElements {
  ElementMap<Index> map;
  const T* data;
  T* y;
  __device__ void operator()(std::int64_t i) const { y[i] = data[map(i)]; }
};

Kernel make_gather_elements(KernelRequest& request) {
  const Shape& data = request.shape();
  const std::int64_t size = request.output().shape.size();
  if (size == 0) return [](const KernelArgs&) {};
  if (data.rank() > ElementMap<std::int64_t>::kMostAxes) return {};
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    visit_index(request, 1, [&]<class Index>() {
      const ElementMap<Index> map(request.shape(1), data, axis_of(request, data.rank()));
      kernel = [=, stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
        GatherElements<T, Index> gather{map, args.input<T>(0), args.output<T>()};
        gather.map.indices = args.input<Index>(1);
        start_items(gather, size, stream);
      };
    });
  });
  return kernel;
}

Kernel make_scatter_elements(KernelRequest& request) {
  const Shape& data = request.shape();
  if (data.size() == 0) return [](const KernelArgs&) {};
  if (data.rank() > ElementMap<std::int64_t>::kMostAxes) return {};
  return scatter_kernel(
      request, {.count = request.shape(1).size()}, ScatterKind::scatter, [&]<class Index>() {
        return ElementMap<Index>(request.shape(1), data, axis_of(request, data.rank()));
      });
}

}  // namespace

void register_gather_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "plain",
                   {{"Gather", make_gather},
                    {"GatherGrad", make_gather_grad, kInternalDomain},
                    {"GatherElements", make_gather_elements},
                    {"Scatter", make_scatter_elements},
                    {"ScatterElements", make_scatter_elements}});
}

}  // namespace graft
