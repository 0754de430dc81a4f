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
  add_cuda_kernels(registry, "plain", {{"Pad", make_pad}});
}

}  // namespace graft
