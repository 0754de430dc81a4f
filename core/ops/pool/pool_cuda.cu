// Pools of row-major planes. A thread makes one element, of the gradient as well: it asks the
// windows that hold the element.
#include <optional>

#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/math_cuda.h"
#include "core/ops/kernels/rows_cuda.h"
#include "core/ops/pool/pool_argmax.h"
#include "core/ops/pool/pool_geometry.h"

namespace graft {
namespace {

/// Three numbers of one row-major index.
struct Place {
  std::int64_t depth;
  std::int64_t height;
  std::int64_t width;
};

__device__ Place place_of(std::int64_t index, std::int64_t height, std::int64_t width) {
  const std::int64_t row = index / width;
  return {row / height, row % height, index - row * width};
}

/// Planes and the windows over each.
struct Planes {
  WindowAxis depth;
  WindowAxis height;
  WindowAxis width;

  explicit Planes(const WindowAxes& axes) : depth(axes[0]), height(axes[1]), width(axes[2]) {}

  __device__ std::int64_t inputs() const { return depth.input * height.input * width.input; }
  __device__ std::int64_t outputs() const { return depth.output * height.output * width.output; }
};

/// The taps of one window that lie within the plane.
struct Window {
  Span depth;
  Span height;
  Span width;

  __device__ Window(const Planes& planes, const Place& output)
      : depth(planes.depth.taps_of_output(output.depth)),
        height(planes.height.taps_of_output(output.height)),
        width(planes.width.taps_of_output(output.width)) {}
  /// Which three sizes take beyond 64 bits where pads are counted.
  __device__ double count() const {
    return static_cast<double>(depth.count()) * static_cast<double>(height.count()) *
           static_cast<double>(width.count());
  }
};

/// Calls visit(position in the plane) for each element of the window of an output, in row-major
/// order.
template <class Visit>
__device__ void for_each_element(const Planes& p, const Place& output, Visit visit) {
  const Window taps(p, output);
  for (std::int64_t d = taps.depth.first; d < taps.depth.last; ++d) {
    for (std::int64_t h = taps.height.first; h < taps.height.last; ++h) {
      const std::int64_t row =
          p.depth.position(output.depth, d) * p.height.input + p.height.position(output.height, h);
      for (std::int64_t w = taps.width.first; w < taps.width.last; ++w) {
        visit(row * p.width.input + p.width.position(output.width, w));
      }
    }
  }
}

/// Taps of which the others read no position `at`: of a kernel of 2^31 few do.
__device__ Span taps_near(const WindowAxis& axis, std::int64_t at) {
  constexpr std::int64_t kFew = 64;
  if (axis.kernel <= kFew) return {0, axis.kernel};
  const std::int64_t start = at + axis.pad_begin;
  const std::int64_t behind = start - (axis.output - 1) * axis.stride;
  const std::int64_t last = start / axis.dilation + 1;
  return {behind <= 0 ? 0 : behind / axis.dilation, last < axis.kernel ? last : axis.kernel};
}

/// Calls visit(output, its index in the plane, tap) for each window that holds an element.
template <class Visit>
__device__ void for_each_window(const Planes& p, const Place& at, Visit visit) {
  const Span depths = taps_near(p.depth, at.depth);
  const Span heights = taps_near(p.height, at.height);
  const Span widths = taps_near(p.width, at.width);
  for (std::int64_t d = depths.last; d-- > depths.first;) {
    const std::int64_t depth = p.depth.output_of_tap(at.depth, d);
    for (std::int64_t h = heights.last; depth >= 0 && h-- > heights.first;) {
      const std::int64_t height = p.height.output_of_tap(at.height, h);
      for (std::int64_t w = widths.last; height >= 0 && w-- > widths.first;) {
        const std::int64_t width = p.width.output_of_tap(at.width, w);
        if (width < 0) continue;
        const std::int64_t index = (depth * p.height.output + height) * p.width.output + width;
        visit(Place{depth, height, width}, index, Place{d, h, w});
      }
    }
  }
}

/// The maximum of a window: NaN beats all, and among equals the first counts.
template <class T>
struct Maximum {
  T value = device_math::lowest<T>();
  std::int64_t position = -1;  ///< in the plane
  std::int64_t tap = 0;        ///< counted within the plane

  __device__ Maximum(const Planes& planes, const Place& output, const T* plane) {
    std::int64_t next = 0;
    for_each_element(planes, output, [&](std::int64_t at) {
      const T one = plane[at];
      if (position < 0 || one > value || (one != one && value == value)) {
        value = one > value || one != one ? one : value;
        position = at;
        tap = next;
      }
      ++next;
    });
  }
};

/// What is asked of maxima; each output may be null.
template <class T>
struct MaxPool {
  Planes planes;
  const T* x;
  T* y;
  std::int64_t* indices;  ///< within all of x
  std::int32_t* positions;
  bool is_column_major;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t plane = i / planes.outputs();
    const Place output = place_of(i % planes.outputs(), planes.height.output, planes.width.output);
    const Maximum<T> most(planes, output, x + plane * planes.inputs());
    if (y != nullptr) y[i] = most.value;
    if (positions != nullptr) positions[i] = static_cast<std::int32_t>(most.position);
    if (indices == nullptr) return;
    const bool is_turned = is_column_major && most.position >= 0;
    indices[i] =
        plane * planes.inputs() + (is_turned ? column_major(most.position) : most.position);
  }

 private:
  __device__ std::int64_t column_major(std::int64_t position) const {
    const Place at = place_of(position, planes.height.input, planes.width.input);
    return at.depth + planes.depth.input * (at.height + planes.height.input * at.width);
  }
};

/// The maxima of a training step, with what follows them; `bias`, by channel, may be null.
template <class T>
struct MaxPoolWithArgmax {
  Planes planes;
  const T* x;
  const T* bias;
  std::int64_t channels;
  bool has_relu;
  T* y;
  std::uint8_t* argmax;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t plane = i / planes.outputs();
    const Place output = place_of(i % planes.outputs(), planes.height.output, planes.width.output);
    const Maximum<T> most(planes, output, x + plane * planes.inputs());
    const T value = bias == nullptr ? most.value : most.value + bias[plane % channels];
    const bool passes = !has_relu || !(value <= T{0});
    y[i] = passes ? value : T{0};
    argmax[i] = passes ? static_cast<std::uint8_t>(most.tap) : kNoTap;
  }
};

/// Adds the gradients of the windows whose maximum the element is.
template <class T>
struct MaxPoolGrad {
  Planes planes;
  const T* dy;
  const std::int32_t* positions;  ///< of the maxima; null where argmax tells
  const std::uint8_t* argmax;
  T* dx;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t plane = i / planes.inputs();
    const std::int64_t position = i % planes.inputs();
    const std::int64_t first = plane * planes.outputs();
    T sum{0};
    for_each_window(planes, place_of(position, planes.height.input, planes.width.input),
                    [&](const Place& output, std::int64_t index, const Place& tap) {
                      const bool is_most = positions != nullptr
                                               ? positions[first + index] == position
                                               : argmax[first + index] == count(output, tap);
                      if (is_most) sum += dy[first + index];
                    });
    dx[i] = sum;
  }

 private:
  /// Which of the window's elements within the plane the tap meets.
  __device__ std::int64_t count(const Place& output, const Place& tap) const {
    const Window taps(planes, output);
    return ((tap.depth - taps.depth.first) * taps.height.count() + tap.height - taps.height.first) *
               taps.width.count() +
           tap.width - taps.width.first;
  }
};

/// By how many elements an average is divided.
__device__ double divisor(const Planes& counted, const Place& output) {
  const double count = Window(counted, output).count();
  return count < 1.0 ? 1.0 : count;
}

template <class T>
struct AveragePool {
  Planes planes;
  Planes counted;
  const T* x;
  T* y;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t plane = i / planes.outputs();
    const Place output = place_of(i % planes.outputs(), planes.height.output, planes.width.output);
    const T* const from = x + plane * planes.inputs();
    T sum{0};
    for_each_element(planes, output, [&](std::int64_t at) { sum += from[at]; });
    y[i] = sum / static_cast<T>(divisor(counted, output));
  }
};

template <class T>
struct AveragePoolGrad {
  Planes planes;
  Planes counted;
  const T* dy;
  T* dx;

  __device__ void operator()(std::int64_t i) const {
    const T* const from = dy + i / planes.inputs() * planes.outputs();
    T sum{0};
    for_each_window(planes, place_of(i % planes.inputs(), planes.height.input, planes.width.input),
                    [&](const Place& output, std::int64_t index, const Place&) {
                      sum += from[index] / static_cast<T>(divisor(counted, output));
                    });
    dx[i] = sum;
  }
};

template <class T, bool is_average>
struct GlobalPool {
  const T* x;
  T* y;
  std::int64_t length;

  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const T* const from = x + row * length;
    T result = device_math::lowest<T>();
    if constexpr (is_average) {
      const double sum =
          team_sum(team, length, [&](std::int64_t i) { return static_cast<double>(from[i]); });
      result = static_cast<T>(sum / static_cast<double>(length));
    } else {
      for (std::int64_t i = team.rank; i < length; i += Team::size) {
        result = Larger{}(result, from[i]);
      }
      result = team.join(result, Larger{});
    }
    if (team.rank == 0) y[row] = result;
  }
};

/// What a pool does to an `x` of that shape.
struct PoolPlan {
  Planes planes;
  Planes counted;        ///< by whose windows averages are divided
  std::int64_t inputs;   ///< elements of x
  std::int64_t outputs;  ///< elements of y
};

/// nullopt for windows that kernels do not take.
std::optional<PoolPlan> plan_of(const KernelRequest& request, const Shape& x) {
  if (!PoolGeometry::fits(x)) return std::nullopt;
  const PoolGeometry g(request.node(), x);
  const bool counts_pads = request.attributes().get_int("count_include_pad", 0) != 0;
  return PoolPlan{Planes(g.axes), Planes(counted_axes(g.axes, counts_pads)),
                  g.planes * g.input_plane(), g.planes * g.output_plane()};
}

Kernel make_max_pool(KernelRequest& request) {
  const auto plan = plan_of(request, request.shape());
  if (!plan) return {};
  const bool is_column_major = request.attributes().get_int("storage_order", 0) == 1;
  return cuda_float_kernel(request,
                           [=, p = *plan]<class T>(const KernelArgs& args, cudaStream_t stream) {
                             const MaxPool<T> pool{p.planes,         args.input<T>(0),
                                                   args.output<T>(), args.output<std::int64_t>(1),
                                                   nullptr,          is_column_major};
                             start_items(pool, p.outputs, stream);
                           });
}

Kernel make_max_pool_with_argmax(KernelRequest& request) {
  const auto plan = plan_of(request, request.shape());
  if (!plan) return {};
  const bool has_relu = request.attributes().get_int("relu", 0) != 0;
  return cuda_float_kernel(request, [p = *plan, channels = request.shape()[1], has_relu]<class T>(
                                        const KernelArgs& args, cudaStream_t stream) {
    const MaxPoolWithArgmax<T> pool{p.planes,
                                    args.input<T>(0),
                                    args.input<T>(1),
                                    channels,
                                    has_relu,
                                    args.output<T>(),
                                    args.output<std::uint8_t>(1)};
    start_items(pool, p.outputs, stream);
  });
}

/// The workspace holds the position of each maximum.
Kernel make_max_pool_grad(KernelRequest& request) {
  const auto plan = plan_of(request, request.shape());
  if (!plan) return {};
  request.need_workspace(bytes_of(DType::i32, plan->outputs));
  return cuda_float_kernel(
      request, [p = *plan]<class T>(const KernelArgs& args, cudaStream_t stream) {
        auto* const positions = static_cast<std::int32_t*>(args.workspace);
        const MaxPool<T> find{p.planes, args.input<T>(0), nullptr, nullptr, positions, false};
        const MaxPoolGrad<T> grad{p.planes, args.input<T>(1), positions, nullptr, args.output<T>()};
        start_items(find, p.outputs, stream);
        start_items(grad, p.inputs, stream);
      });
}

Kernel make_max_pool_grad_with_argmax(KernelRequest& request) {
  const auto plan = plan_of(request, request.output().shape);
  if (!plan) return {};
  return cuda_float_kernel(
      request, [p = *plan]<class T>(const KernelArgs& args, cudaStream_t stream) {
        const MaxPoolGrad<T> grad{p.planes, args.input<T>(0), nullptr, args.input<std::uint8_t>(1),
                                  args.output<T>()};
        start_items(grad, p.inputs, stream);
      });
}

Kernel make_average_pool(KernelRequest& request) {
  const auto plan = plan_of(request, request.shape());
  if (!plan) return {};
  return cuda_float_kernel(
      request, [p = *plan]<class T>(const KernelArgs& args, cudaStream_t stream) {
        start_items(AveragePool<T>{p.planes, p.counted, args.input<T>(0), args.output<T>()},
                    p.outputs, stream);
      });
}

Kernel make_average_pool_grad(KernelRequest& request) {
  const auto plan = plan_of(request, request.output().shape);
  if (!plan) return {};
  return cuda_float_kernel(
      request, [p = *plan]<class T>(const KernelArgs& args, cudaStream_t stream) {
        start_items(AveragePoolGrad<T>{p.planes, p.counted, args.input<T>(0), args.output<T>()},
                    p.inputs, stream);
      });
}

template <bool is_average>
Kernel make_global_pool(KernelRequest& request) {
  const std::int64_t planes = request.output().shape.size();
  const std::int64_t length = request.shape().size(2, request.shape().rank());
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    start_rows(GlobalPool<T, is_average>{args.input<T>(0), args.output<T>(), length}, planes,
               length, true, stream);
  });
}

}  // namespace

void register_pool_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "planes",
                   {{"MaxPool", make_max_pool},
                    {"MaxPoolGrad", make_max_pool_grad, kInternalDomain},
                    {"MaxPoolWithArgmax", make_max_pool_with_argmax, kInternalDomain},
                    {"MaxPoolGradWithArgmax", make_max_pool_grad_with_argmax, kInternalDomain},
                    {"AveragePool", make_average_pool},
                    {"AveragePoolGrad", make_average_pool_grad, kInternalDomain},
                    {"GlobalAveragePool", make_global_pool<true>},
                    {"GlobalMaxPool", make_global_pool<false>}});
}

}  // namespace graft
