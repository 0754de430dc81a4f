#include "core/ops/kernels/copy.h"
#include "core/ops/kernels/elementwise.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/math/constant.h"
#include "core/ops/registry.h"

namespace graft {

namespace {

Kernel make_constant(KernelRequest& request) {
  const Tensor value = constant_value(request.node());
  if (value.dtype() == DType::string) return {};
  return copy_kernel(value);
}

Kernel make_constant_of_shape(KernelRequest& request) {
  const std::int64_t size = request.output().shape.size();
  const Tensor value = fill_value(request.node());
  Kernel kernel;
  visit_width(value.dtype(), [&]<class T>() {
    kernel = [value, size](const KernelArgs& args) {
      fill_elements(args.output<T>(), size, *static_cast<const T*>(value.data()));
    };
  });
  return kernel;
}

Kernel make_shape(KernelRequest& request) {
  const Shape& shape = request.shape();
  const DimRange range = shape_range(request.node(), shape.rank());
  const std::vector<std::int64_t> dims(shape.begin() + range.first, shape.begin() + range.last);
  return copy_kernel(Tensor::from({static_cast<std::int64_t>(dims.size())}, dims));
}

Kernel make_size(KernelRequest& request) {
  return copy_kernel(Tensor::scalar(request.shape().size()));
}

/// `Sum` is the type that it computes in.
template <class T, class Sum = T>
Kernel range_kernel(const KernelRequest& request) {
  return [size = request.output().shape.size()](const KernelArgs& args) {
    const auto start = static_cast<Sum>(*args.input<T>(0));
    const auto delta = static_cast<Sum>(*args.input<T>(2));
    for (std::int64_t i = 0; i < size; ++i) {
      const auto steps = wrapping(static_cast<Sum>(i)) * wrapping(delta);
      args.output<T>()[i] = static_cast<T>(wrapping(start) + steps);
    }
  };
}

Kernel make_range(KernelRequest& request) {
  Kernel kernel;
  visit_kernel_dtype(TypeList<float, double, std::int64_t, std::int32_t, std::int16_t>{},
                     request.dtype(), [&]<class T>() { kernel = range_kernel<T>(request); });
  visit_kernel_dtype(TypeList<Half, BFloat16>{}, request.dtype(),
                     [&]<class T>() { kernel = range_kernel<T, float>(request); });
  return kernel;
}

Kernel make_eye_like(KernelRequest& request) {
  const Shape& shape = request.output().shape;
  const std::int64_t k = request.attributes().get_int("k", 0);
  Kernel kernel;
  visit_kernel_dtype(AllTypes{}, request.output().dtype, [&]<class T>() {
    const T one = *Tensor::full(dtype_of<T>, {}, 1.0).template values<T>().data();
    kernel = [shape, k, one](const KernelArgs& args) {
      T* const y = args.output<T>();
      fill_elements(y, shape.size(), T{});
      if (k >= shape[1] || k <= -shape[0]) return;
      const std::int64_t last = std::min(shape[0], shape[1] - k);
      for (std::int64_t row = std::max<std::int64_t>(0, -k); row < last; ++row) {
        y[row * shape[1] + row + k] = one;
      }
    };
  });
  return kernel;
}

}  // namespace

void register_constant_cpu(KernelRegistry& registry) {
  registry.add({.op = "Constant", .name = "plain", .make = make_constant});
  registry.add({.op = "ConstantOfShape", .name = "plain", .make = make_constant_of_shape});
  registry.add({.op = "Shape", .name = "plain", .make = make_shape});
  registry.add({.op = "Size", .name = "plain", .make = make_size});
  registry.add({.op = "Range", .name = "plain", .make = make_range});
  registry.add({.op = "EyeLike", .name = "plain", .make = make_eye_like});
}

}  // namespace graft
