#include <cstring>

#include "core/base/machine.h"
#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/index.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/move/gather.h"
#include "core/ops/move/gather_layout.h"
#include "core/ops/move/scatter_reduction.h"
#include "core/ops/registry.h"

namespace graft {

namespace {

int axis_of(const KernelRequest& request, int rank) {
  return normalize_axis(request.attributes().get_int("axis", 0), rank, request.node().label());
}

/// `width`: bytes of an element.
void gather(const GatherLayout& layout, std::int64_t width, const std::byte* data,
            const IndexInput::Values& indices, std::byte* y) {
  const std::int64_t row_bytes = layout.inner * width;
  const auto copy_rows = [&](std::int64_t outer, std::int64_t first, std::int64_t last) {
    const std::byte* const from = data + outer * layout.dim * row_bytes;
    std::byte* to = y + (outer * layout.count + first) * row_bytes;
    for (std::int64_t i = first; i < last; ++i, to += row_bytes) {
      const std::int64_t row = clamp_index(indices[i], layout.dim);
      std::memcpy(to, from + row * row_bytes, static_cast<std::size_t>(row_bytes));
    }
  };
  parallel_for(layout.outer * layout.count, kElementwiseGrain / layout.inner + 1,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t row = first; row < last;) {
                   const std::int64_t outer = row / layout.count;
                   const std::int64_t start = outer * layout.count;
                   const std::int64_t end = std::min(last, start + layout.count);
                   copy_rows(outer, row - start, end - start);
                   row = end;
                 }
               });
}

Kernel make_gather(KernelRequest& request) {
  const Shape& data = request.shape();
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  const GatherLayout layout(data, axis_of(request, data.rank()), request.shape(1));
  const std::int64_t width = width_of(request.dtype());
  if (width == 0) return {};
  return [layout, width, index = IndexInput(request, 1)](const KernelArgs& args) {
    gather(layout, width, args.input<std::byte>(0), index.of(args), args.output<std::byte>());
  };
}

/// Each thread owns some columns of the result, or some outer slices when there are few columns,
/// and adds up all rows there in order: the same bits for any number of threads.
template <class T>
void gather_grad(const GatherLayout& layout, const T* dy, const IndexInput::Values& indices,
                 T* dx) {
  const auto add_columns = [&](std::int64_t outer, std::int64_t first, std::int64_t last) {
    T* const to = dx + outer * layout.dim * layout.inner;
    const T* from = dy + outer * layout.count * layout.inner;
    for (std::int64_t i = 0; i < layout.count; ++i, from += layout.inner) {
      const std::int64_t row = clamp_index(indices[i], layout.dim);
      T* const sum = to + row * layout.inner;
#pragma omp simd
      for (std::int64_t j = first; j < last; ++j) sum[j] += from[j];
    }
  };
  // Zeros first, in long runs: columns of a wide table would be filled in short ones.
  fill_elements(dx, layout.outer * layout.dim * layout.inner, T{});
  const std::int64_t slice = layout.count * layout.inner;
  parallel_for(layout.outer, kElementwiseGrain / (slice + 1) + 1,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t outer = first; outer < last; ++outer) {
                   constexpr std::int64_t kColumnsWorthAThread = 32;
                   const std::int64_t grain =
                       slice < 2 * kElementwiseGrain ? layout.inner : kColumnsWorthAThread;
                   parallel_for(layout.inner, grain, [&](std::int64_t from, std::int64_t to) {
                     add_columns(outer, from, to);
                   });
                 }
               });
}

Kernel make_gather_grad(KernelRequest& request) {
  const Shape& dx = request.output().shape;
  if (dx.size() == 0) return [](const KernelArgs&) {};
  const auto axis = static_cast<int>(request.attributes().get_int("axis", 0));
  const GatherLayout layout(dx, axis, request.shape(1));
  const IndexInput index(request, 1);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [layout, index](const KernelArgs& args) {
      gather_grad(layout, args.input<T>(0), index.of(args), args.output<T>());
    };
  });
  return kernel;
}

/// Maps elements of a tensor of indices to elements of the data: the same place but for one axis.
class ElementMap {
 public:
  ElementMap(const Shape& indices, const Shape& data, int axis)
      : dims_(indices.dims()),
        strides_(data.strides()),
        axis_(static_cast<std::size_t>(axis)),
        dim_(data[axis]) {}

  /// Where in the data the element of `indices` at `position` points with the value `index`.
  std::int64_t operator()(std::int64_t position, std::int64_t index) const {
    std::int64_t offset = clamp_index(index, dim_) * strides_[axis_];
    for (std::size_t i = dims_.size(); i-- > 0;) {
      if (i != axis_) offset += position % dims_[i] * strides_[i];
      position /= dims_[i];
    }
    return offset;
  }

 private:
  std::vector<std::int64_t> dims_;
  std::vector<std::int64_t> strides_;
  std::size_t axis_;
  std::int64_t dim_;
};

Kernel make_gather_elements(KernelRequest& request) {
  const Shape& data = request.shape();
  const std::int64_t size = request.output().shape.size();
  if (size == 0) return [](const KernelArgs&) {};
  const ElementMap map(request.shape(1), data, axis_of(request, data.rank()));
  const IndexInput index(request, 1);
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    kernel = [map, index, size](const KernelArgs& args) {
      const IndexInput::Values indices = index.of(args);
      parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          args.output<T>()[i] = args.input<T>(0)[map(i, indices[i])];
        }
      });
    };
  });
  return kernel;
}

/// Updates go in their order, on one thread: those of one place follow one another.
template <class T>
Kernel scatter_elements_kernel(const KernelRequest& request) {
  const Shape& data = request.shape();
  const ElementMap map(request.shape(1), data, axis_of(request, data.rank()));
  const ScatterReduction reduction = reduction_of(request);
  return [map, reduction, index = IndexInput(request, 1), size = data.size(),
          count = request.shape(1).size()](const KernelArgs& args) {
    T* const y = args.output<T>();
    if (args.inputs[0] != y) {
      parallel_for(size, kElementwiseGrain, [&](std::int64_t first, std::int64_t last) {
        std::copy(args.input<T>(0) + first, args.input<T>(0) + last, y + first);
      });
    }
    const IndexInput::Values indices = index.of(args);
    for (std::int64_t i = 0; i < count; ++i) {
      T& place = y[map(i, indices[i])];
      place = combine(reduction, place, args.input<T>(2)[i]);
    }
  };
}

Kernel make_scatter_elements(KernelRequest& request) {
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  Kernel kernel;
  visit_kernel_dtype(NumericTypes{}, scattered_type(request),
                     [&]<class T>() { kernel = scatter_elements_kernel<T>(request); });
  return kernel;
}

}  // namespace

void register_gather_cpu(KernelRegistry& registry) {
  registry.add({.op = "Gather", .name = "plain", .make = make_gather});
  registry.add(
      {.op = "GatherGrad", .domain = kInternalDomain, .name = "eigen", .make = make_gather_grad});
  registry.add({.op = "GatherElements", .name = "plain", .make = make_gather_elements});
  registry.add({.op = "Scatter", .name = "plain", .make = make_scatter_elements});
  registry.add({.op = "ScatterElements", .name = "plain", .make = make_scatter_elements});
}

}  // namespace graft
