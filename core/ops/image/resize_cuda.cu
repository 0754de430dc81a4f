// Resize and its gradient, axis by axis: each is a linear map whose table lies on the device.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "core/ops/image/resize.h"
#include "core/ops/kernels/device_table.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"

namespace graft {
namespace {

/// x [outer, input, inner] to y [outer, output, inner].
template <class T>
struct ResizeAxisStep {
  const T* x;
  T* y;
  const std::int32_t* first;
  const T* weights;  ///< [tap, output]
  std::int64_t taps;
  std::int64_t input;
  std::int64_t output;
  std::int64_t inner;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / inner;
    const std::int64_t o = row % output;
    const T* const from = x + (row / output * input + first[o]) * inner + i % inner;
    T sum = weights[o] * from[0];
    for (std::int64_t tap = 1; tap < taps; ++tap) {
      sum += weights[tap * output + o] * from[tap * inner];
    }
    y[i] = sum;
  }
};

/// The outputs that lie outside of the input become `value`.
template <class T>
struct Extrapolate {
  T* y;
  const std::int64_t* outside;
  std::int64_t count;
  std::int64_t output;
  std::int64_t inner;
  T value;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t row = i / inner;
    y[(row / count * output + outside[row % count]) * inner + i % inner] = value;
  }
};

/// One axis, with its table on the device.
template <class T>
struct Step {
  std::shared_ptr<const std::int32_t> first;
  std::shared_ptr<const T> weights;
  std::shared_ptr<const std::int64_t> outside;
  std::int64_t outside_count;
  std::int64_t taps;
  std::int64_t input;
  std::int64_t output;
  std::int64_t inner;
  std::int64_t size;  ///< elements behind the step

  Step(Device& device, const ResizeTable& table, std::int64_t outer, std::int64_t inner_size)
      : first(device_table(device, table.first)),
        weights(device_table(device, std::vector<T>(table.weights.begin(), table.weights.end()))),
        outside(device_table(device, table.outside)),
        outside_count(static_cast<std::int64_t>(table.outside.size())),
        taps(table.taps),
        input(table.input),
        output(table.output),
        inner(inner_size),
        size(checked_multiply(checked_multiply(outer, table.output), inner_size)) {}
};

struct AxisAndTable {
  int axis;
  ResizeTable table;
};

/// All axes, in ascending order; between them data stand in two buffers by turns.
template <class T>
class Steps {
 public:
  Steps(Device& device, std::vector<std::int64_t> dims, const std::vector<AxisAndTable>& axes) {
    for (const auto& [axis, table] : axes) {
      const Shape shape(dims);
      steps_.emplace_back(device, table, shape.size(0, axis), shape.size(axis + 1, shape.rank()));
      dims[static_cast<std::size_t>(axis)] = table.output;
    }
    for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
      between_ = std::max(between_, steps_[i].size);
    }
  }

  std::size_t workspace_bytes() const {
    const auto buffers = std::min<std::size_t>(2, steps_.size() - 1);
    return buffers * static_cast<std::size_t>(between_) * sizeof(T);
  }

  void run(const T* x, T* y, T* buffers, cudaStream_t stream) const {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step<T>& s = steps_[i];
      T* const to = i + 1 == steps_.size() ? y : buffers + (i % 2 == 0 ? 0 : between_);
      start_items(ResizeAxisStep<T>{x, to, s.first.get(), s.weights.get(), s.taps, s.input,
                                    s.output, s.inner},
                  s.size, stream);
      x = to;
    }
  }

  /// Behind `run`. `whole`: the shape of y, whose axes are those of the steps.
  void extrapolate(const Shape& whole, const std::vector<int>& axes, T* y, T value,
                   cudaStream_t stream) const {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step<T>& s = steps_[i];
      if (s.outside_count == 0) continue;
      const std::int64_t outer = whole.size(0, axes[i]);
      const std::int64_t inner = whole.size(axes[i] + 1, whole.rank());
      start_items(Extrapolate<T>{y, s.outside.get(), s.outside_count, s.output, inner, value},
                  outer * s.outside_count * inner, stream);
    }
  }

 private:
  std::vector<Step<T>> steps_;
  std::int64_t between_ = 0;
};

Kernel copy_kernel(const KernelRequest& request) {
  const std::size_t bytes = bytes_of(request.dtype(), request.shape().size());
  return [bytes, device = &as_cuda(request.device())](const KernelArgs& args) {
    device->copy_async(args.outputs[0], args.inputs[0], bytes);
  };
}

template <class T>
Kernel resize_kernel(KernelRequest& request, const std::vector<AxisAndTable>& tables) {
  const Steps<T> steps(request.device(), request.shape().dims(), tables);
  request.need_workspace(steps.workspace_bytes());
  std::vector<int> axes;
  for (const AxisAndTable& one : tables) axes.push_back(one.axis);
  const auto value = static_cast<T>(request.attributes().get_float("extrapolation_value", 0.0F));
  return [=, whole = request.output().shape,
          stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
    steps.run(args.input<T>(0), args.output<T>(), static_cast<T*>(args.workspace), stream);
    steps.extrapolate(whole, axes, args.output<T>(), value, stream);
  };
}

/// The changed axes of an `x` of that shape, with what is done along each; of the gradient when
/// transposed. nullopt when that is not known before the run.
std::optional<std::vector<AxisAndTable>> tables_of(const KernelRequest& request, const Shape& x,
                                                   bool is_transposed) {
  const InferContext context(const_cast<Node&>(request.node()));  // reads only
  const auto changed = resize_axes(context, x);
  if (!changed) return std::nullopt;
  std::vector<AxisAndTable> axes;
  for (const ResizeAxis& axis : *changed) {
    ResizeTable table = resize_table(request.node(), axis);
    if (is_transposed) table = table.transposed(request.node());
    axes.push_back({axis.axis, std::move(table)});
  }
  return axes;
}

Kernel make_resize(KernelRequest& request) {
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    const auto axes = tables_of(request, request.shape(), false);
    if (axes) kernel = axes->empty() ? copy_kernel(request) : resize_kernel<T>(request, *axes);
  });
  return kernel;
}

Kernel make_resize_grad(KernelRequest& request) {
  const Shape& dx = request.output().shape;
  if (dx.size() == 0) return [](const KernelArgs&) {};
  if (request.shape().size() == 0) {
    return [bytes = bytes_of(request.dtype(), dx.size()), device = &as_cuda(request.device())](
               const KernelArgs& args) { device->fill(args.outputs[0], 0, bytes); };
  }
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    const auto axes = tables_of(request, dx, true);
    if (axes) kernel = axes->empty() ? copy_kernel(request) : resize_kernel<T>(request, *axes);
  });
  return kernel;
}

}  // namespace

void register_resize_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "tables",
                   {{"Resize", make_resize}, {"ResizeGrad", make_resize_grad, kInternalDomain}});
}

}  // namespace graft
