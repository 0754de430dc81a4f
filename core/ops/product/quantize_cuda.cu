#include <cmath>
#include <limits>

#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/product/quantize.h"

namespace graft {
namespace {

/// Where the scale of element `i` lies, as ScaleWalk finds it.
__device__ std::int64_t scale_index(const ScaleLayout& layout, std::int64_t i) {
  const std::int64_t row = i / layout.inner;
  const std::int64_t outer = row / layout.axis;
  const std::int64_t along = row - outer * layout.axis;
  return outer * layout.outer_step + along / layout.block * layout.axis_step +
         (i - row * layout.inner) * layout.inner_step;
}

template <class Q>
struct Quantize {
  const float* x;
  const float* scale;
  const Q* zero;  ///< null: 0
  Q* y;
  ScaleLayout layout;

  __device__ void operator()(std::int64_t i) const {
    constexpr auto kLow = static_cast<float>(std::numeric_limits<Q>::min());
    constexpr auto kHigh = static_cast<float>(std::numeric_limits<Q>::max());
    const std::int64_t at = scale_index(layout, i);
    const float offset = zero == nullptr ? 0.0F : static_cast<float>(zero[at]);
    const float q = rintf(x[i] / scale[at]) + offset;
    y[i] = q == q ? static_cast<Q>(q < kLow ? kLow : q > kHigh ? kHigh : q) : Q{0};
  }
};

template <class Q>
struct Dequantize {
  const Q* x;
  const float* scale;
  const Q* zero;  ///< null: 0
  float* y;
  ScaleLayout layout;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t at = scale_index(layout, i);
    const float offset = zero == nullptr ? 0.0F : static_cast<float>(zero[at]);
    y[i] = (static_cast<float>(x[i]) - offset) * scale[at];
  }
};

bool computes_in_f32(const KernelRequest& request, DType number) {
  const auto precision =
      static_cast<DType>(request.attributes().get_int("precision", static_cast<int>(DType::f32)));
  return number == DType::f32 && request.dtype(1) == DType::f32 && precision == DType::f32;
}

/// `Body`: Quantize or Dequantize, from element type X to Y, with zero points of type Q.
template <class Body, class X, class Y, class Q>
Kernel start_scaled(const KernelRequest& request) {
  const ScaleLayout layout(request.node(), request.shape(0), request.shape(1));
  const bool has_zero = request.has_input(2);
  return [=, size = request.shape().size(),
          stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
    start_items(Body{args.input<X>(0), args.input<float>(1), has_zero ? args.input<Q>(2) : nullptr,
                     args.output<Y>(), layout},
                size, stream);
  };
}

Kernel make_quantize(KernelRequest& request) {
  Kernel kernel;
  if (!computes_in_f32(request, request.dtype())) return kernel;
  visit_dtype(TypeList<std::int8_t, std::uint8_t>{}, request.output().dtype,
              [&]<class Q>() { kernel = start_scaled<Quantize<Q>, float, Q, Q>(request); });
  return kernel;
}

Kernel make_dequantize(KernelRequest& request) {
  Kernel kernel;
  if (!computes_in_f32(request, request.output().dtype)) return kernel;
  visit_dtype(TypeList<std::int8_t, std::uint8_t, std::int32_t>{}, request.dtype(),
              [&]<class Q>() { kernel = start_scaled<Dequantize<Q>, Q, float, Q>(request); });
  return kernel;
}

}  // namespace

void register_quantize_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "plain",
                   {{"DequantizeLinear", make_dequantize}, {"QuantizeLinear", make_quantize}});
}

}  // namespace graft
