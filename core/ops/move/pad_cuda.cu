#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/width.h"
#include "core/ops/move/pad.h"

namespace graft {
namespace {

template <class T>
struct Pad {
  static constexpr int kMostAxes = 8;
  const T* x;
  const T* value;  ///< null: zero
  T* y;
  PadMode mode;
  int rank;
  std::int64_t inputs[kMostAxes];
  std::int64_t outputs[kMostAxes];
  std::int64_t before[kMostAxes];

  __device__ void operator()(std::int64_t i) const {
    std::int64_t rest = i;
    std::int64_t from = 0;
    std::int64_t stride = 1;
    bool is_inside = true;
    for (int axis = rank; axis-- > 0;) {
      const std::int64_t at = rest % outputs[axis] - before[axis];
      rest /= outputs[axis];
      const std::int64_t source = source_position(at, inputs[axis]);
      is_inside = is_inside && source >= 0;
      from += source * stride;
      stride *= inputs[axis];
    }
    y[i] = is_inside ? x[from] : value == nullptr ? T{} : *value;
  }

 private:
  /// Which element of an axis of `dim` stands at `at`, counted from the first unpadded one; -1 if
  /// the value does.
  __device__ std::int64_t source_position(std::int64_t at, std::int64_t dim) const {
    if (mode == PadMode::constant) return at >= 0 && at < dim ? at : -1;
    if (mode == PadMode::edge) return at < 0 ? 0 : at < dim ? at : dim - 1;
    const std::int64_t around = dim > 1 ? 2 * (dim - 1) : 1;
    const std::int64_t period = mode == PadMode::wrap ? dim : around;
    const std::int64_t phase = (at % period + period) % period;
    return phase < dim ? phase : period - phase;
  }
};

/// dx: for each element of the data, the sum over the places of the padded tensor that repeat it.
template <class T>
struct PadGrad {
  static constexpr int kMostAxes = 8;
  const T* dy;
  T* dx;
  PadMode mode;
  int rank;
  std::int64_t data[kMostAxes];
  std::int64_t padded[kMostAxes];
  std::int64_t before[kMostAxes];

  __device__ void operator()(std::int64_t i) const {
    std::int64_t count = 1;
    std::int64_t rest = i;
    for (int axis = rank; axis-- > 0; rest /= data[axis]) {
      count *= places(axis, rest % data[axis]).count();
    }
    double sum = 0.0;
    for (std::int64_t k = 0; k < count; ++k) sum += static_cast<double>(dy[place(i, k)]);
    dx[i] = static_cast<T>(sum);
  }

 private:
  /// first, first + step, ... and, by reflection, mirrored, mirrored + step, ... of one axis.
  struct Places {
    std::int64_t first;
    std::int64_t first_count;
    std::int64_t mirrored;
    std::int64_t mirrored_count;
    std::int64_t step;

    __device__ std::int64_t count() const { return first_count + mirrored_count; }
    __device__ std::int64_t at(std::int64_t k) const {
      return k < first_count ? first + k * step : mirrored + (k - first_count) * step;
    }
  };

  /// The smallest number from `low` on that is `i` plus a multiple of `step`.
  static __device__ std::int64_t first_from(std::int64_t low, std::int64_t i, std::int64_t step) {
    return low + ((i - low) % step + step) % step;
  }
  static __device__ std::int64_t count_up_to(std::int64_t high, std::int64_t first,
                                             std::int64_t step) {
    return high < first ? 0 : (high - first) / step + 1;
  }

  /// Counted from the first element of the data; those of the padded tensor are low to high.
  __device__ Places places(int axis, std::int64_t i) const {
    const std::int64_t dim = data[axis];
    const std::int64_t low = -before[axis];
    const std::int64_t high = padded[axis] - before[axis] - 1;
    if (mode == PadMode::edge) {
      const std::int64_t from = i == 0 || i < low ? low : i;
      const std::int64_t to = i == dim - 1 || i > high ? high : i;
      const bool is_left_out = (i < low && i != dim - 1) || (i > high && i != 0);
      return {from, is_left_out ? 0 : count_up_to(to, from, 1), 0, 0, 1};
    }
    const std::int64_t step = mode == PadMode::wrap ? dim : dim > 1 ? 2 * (dim - 1) : 1;
    const std::int64_t first = first_from(low, i, step);
    const std::int64_t mirrored = first_from(low, -i, step);
    const bool is_once = mode == PadMode::wrap || i % (step > 1 ? step / 2 : 1) == 0;
    return {first, count_up_to(high, first, step), mirrored,
            is_once ? 0 : count_up_to(high, mirrored, step), step};
  }

  /// Where the k-th place of element i is.
  __device__ std::int64_t place(std::int64_t i, std::int64_t k) const {
    std::int64_t at = 0;
    std::int64_t stride = 1;
    for (int axis = rank; axis-- > 0; i /= data[axis]) {
      const Places here = places(axis, i % data[axis]);
      at += (here.at(k % here.count()) + before[axis]) * stride;
      stride *= padded[axis];
      k /= here.count();
    }
    return at;
  }
};

Kernel make_pad_grad(KernelRequest& request) {
  const Shape& dx = request.output().shape;
  if (dx.size() == 0) return [](const KernelArgs&) {};
  if (dx.rank() > PadGrad<float>::kMostAxes) return {};
  const std::vector<std::int64_t> before = request.attributes().get_ints("before");
  return cuda_float_kernel(
      request, [mode = pad_mode(request.node()), data = dx, padded = request.shape(),
                before]<class T>(const KernelArgs& args, cudaStream_t stream) {
        PadGrad<T> grad{args.input<T>(0), args.output<T>(), mode, data.rank(), {}, {}, {}};
        for (int axis = 0; axis < data.rank(); ++axis) {
          grad.data[axis] = data[axis];
          grad.padded[axis] = padded[axis];
          grad.before[axis] = before[static_cast<std::size_t>(axis)];
        }
        start_items(grad, data.size(), stream);
      });
}

Kernel make_pad(KernelRequest& request) {
  const Shape& x = request.shape();
  const Shape& whole = request.output().shape;
  if (whole.size() == 0) return [](const KernelArgs&) {};
  const InferContext context(const_cast<Node&>(request.node()));  // reads only
  const auto amounts = pad_amounts(context, x.rank());
  if (!amounts || x.rank() > Pad<float>::kMostAxes) return {};
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    Pad<T> pad{};
    pad.mode = pad_mode(request.node());
    pad.rank = x.rank();
    for (int axis = 0; axis < x.rank(); ++axis) {
      pad.inputs[axis] = x[axis];
      pad.outputs[axis] = whole[axis];
      pad.before[axis] = amounts->before[static_cast<std::size_t>(axis)];
    }
    kernel = [pad, size = whole.size(),
              stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      Pad<T> call = pad;
      call.x = args.input<T>(0);
      call.value = args.input<T>(2);
      call.y = args.output<T>();
      start_items(call, size, stream);
    };
  });
  return kernel;
}

}  // namespace

void register_pad_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "plain",
                   {{"Pad", make_pad}, {"PadGrad", make_pad_grad, kInternalDomain}});
}

}  // namespace graft
