#include <algorithm>
#include <type_traits>

#include "core/base/parallel.h"
#include "core/ops/conv/conv_clamp.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Calls body(tap, y_offset, x_offset, count, stride) for each run of a plane's outputs that meet
/// one tap: element y_offset + i meets x_offset + i * stride. The stride is a compile-time 1 where
/// it is 1, so that loops vectorise.
template <class Body>
void for_each_tap_run(const WindowAxes& axes, Body&& body) {
  const auto& [depth, height, width] = axes;
  std::int64_t tap = 0;
  for (std::int64_t kd = 0; kd < depth.kernel; ++kd) {
    const Span od = depth.outputs_of_tap(kd);
    for (std::int64_t kh = 0; kh < height.kernel; ++kh) {
      const Span oh = height.outputs_of_tap(kh);
      for (std::int64_t kw = 0; kw < width.kernel; ++kw, ++tap) {
        const Span ow = width.outputs_of_tap(kw);
        if (ow.count() == 0) continue;
        for (std::int64_t d = od.first; d < od.last; ++d) {
          for (std::int64_t h = oh.first; h < oh.last; ++h) {
            const std::int64_t x_row =
                depth.position(d, kd) * height.input + height.position(h, kh);
            const std::int64_t x = x_row * width.input + width.position(ow.first, kw);
            const std::int64_t y = (d * height.output + h) * width.output + ow.first;
            if (width.stride == 1) {
              body(tap, y, x, ow.count(), std::integral_constant<std::int64_t, 1>{});
            } else {
              body(tap, y, x, ow.count(), width.stride);
            }
          }
        }
      }
    }
  }
}

/// Planes that make a thread worth waking.
std::int64_t plane_grain(const ConvGeometry& g, std::int64_t planes_per_plane) {
  constexpr double kMultiplyAddsWorthAThread = 32768;
  // Not in integers: without images a plane may be of any size.
  const double work = static_cast<double>(g.output_plane()) * static_cast<double>(g.taps()) *
                      static_cast<double>(planes_per_plane);
  return static_cast<std::int64_t>(kMultiplyAddsWorthAThread / std::max(1.0, work)) + 1;
}

template <class T>
void convolve(const ConvGeometry& g, const T* x, const T* w, const T* bias, T* y) {
  const std::int64_t channels = g.groups * g.outputs;
  parallel_for(g.batch * channels, plane_grain(g, g.inputs), [&](auto first, auto last) {
    for (std::int64_t plane = first; plane < last; ++plane) {
      const std::int64_t n = plane / channels;
      const std::int64_t m = plane % channels;
      const std::int64_t group = m / g.outputs;
      T* const to = y + plane * g.output_plane();
      std::fill_n(to, g.output_plane(), bias == nullptr ? T(0) : bias[m]);
      for (std::int64_t c = 0; c < g.inputs; ++c) {
        const T* const from = x + ((n * g.groups + group) * g.inputs + c) * g.input_plane();
        const T* const weight = w + (m * g.inputs + c) * g.taps();
        for_each_tap_run(g.axes, [&](auto tap, auto y_at, auto x_at, auto count, auto stride) {
          const T factor = weight[tap];
          for (std::int64_t i = 0; i < count; ++i) to[y_at + i] += factor * from[x_at + i * stride];
        });
      }
    }
  });
}

/// Each plane of dx begins as `start(plane, to)` leaves it.
template <class T, class Start>
void convolve_back(const ConvGeometry& g, const T* dy, const T* w, T* dx, Start&& start) {
  const std::int64_t channels = g.groups * g.inputs;
  parallel_for(g.batch * channels, plane_grain(g, g.outputs), [&](auto first, auto last) {
    for (std::int64_t plane = first; plane < last; ++plane) {
      const std::int64_t n = plane / channels;
      const std::int64_t group = plane % channels / g.inputs;
      const std::int64_t c = plane % g.inputs;
      T* const to = dx + plane * g.input_plane();
      start(plane, to);
      for (std::int64_t k = 0; k < g.outputs; ++k) {
        const std::int64_t m = group * g.outputs + k;
        const T* const from = dy + (n * g.groups * g.outputs + m) * g.output_plane();
        const T* const weight = w + (m * g.inputs + c) * g.taps();
        for_each_tap_run(g.axes, [&](auto tap, auto y_at, auto x_at, auto count, auto stride) {
          const T factor = weight[tap];
          for (std::int64_t i = 0; i < count; ++i) to[x_at + i * stride] += factor * from[y_at + i];
        });
      }
    }
  });
}

/// Sum of a[i] * b[i * stride], in several lanes.
template <class T, class Stride>
T dot(const T* a, const T* b, std::int64_t count, Stride stride) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i * stride];
  return sum;
}

/// Rows are summed in T, their sums in `sums`, f64: one for each tap of each plane of dw.
template <class T>
void correlate(const ConvGeometry& g, const T* x, const T* dy, T* dw, double* sums) {
  const std::int64_t channels = g.groups * g.outputs;
  const std::int64_t grain = plane_grain(g, g.batch);
  parallel_for(channels * g.inputs, grain, [&](auto first, auto last) {
    std::fill(sums + first * g.taps(), sums + last * g.taps(), 0.0);
    for (std::int64_t plane = first; plane < last; ++plane) {
      const std::int64_t m = plane / g.inputs;
      const std::int64_t c = m / g.outputs * g.inputs + plane % g.inputs;
      double* const sum = sums + plane * g.taps();
      for (std::int64_t n = 0; n < g.batch; ++n) {
        const T* const a = dy + (n * channels + m) * g.output_plane();
        const T* const b = x + (n * g.groups * g.inputs + c) * g.input_plane();
        for_each_tap_run(g.axes, [&](auto tap, auto y_at, auto x_at, auto count, auto stride) {
          sum[tap] += static_cast<double>(dot(a + y_at, b + x_at, count, stride));
        });
      }
    }
    for (std::int64_t i = first * g.taps(); i < last * g.taps(); ++i) {
      dw[i] = static_cast<T>(sums[i]);
    }
  });
}

template <class T>
void sum_channels(const ConvGeometry& g, const T* dy, T* db) {
  const std::int64_t channels = g.groups * g.outputs;
  parallel_for(channels, plane_grain(g, g.batch), [&](auto first, auto last) {
    for (std::int64_t m = first; m < last; ++m) {
      double sum = 0;
      for (std::int64_t n = 0; n < g.batch; ++n) {
        const T* const from = dy + (n * channels + m) * g.output_plane();
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < g.output_plane(); ++i) sum += static_cast<double>(from[i]);
      }
      db[m] = static_cast<T>(sum);
    }
  });
}

Kernel make_conv(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.shape(0), request.shape(1), request.output().shape);
  Kernel kernel;
  if (g.rank > 3) return kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    const bool has_bias = request.has_input(2);
    kernel = [g, has_bias](const KernelArgs& args) {
      convolve(g, args.input<T>(0), args.input<T>(1), has_bias ? args.input<T>(2) : nullptr,
               args.output<T>());
    };
  });
  return kernel;
}

Kernel make_conv_clamp(KernelRequest& request) {
  Kernel conv = make_conv(request);
  if (!conv) return {};
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [conv, clamp = ConvClamp(request.attributes()),
              count = request.output().shape.size()](const KernelArgs& args) {
      conv(args);
      T* const y = args.output<T>();
      std::transform(y, y + count, y, clamp);
    };
  });
  return kernel;
}

/// For quantized convolutions; on an unsigned type, whose overflow is defined.
Kernel make_integer_conv(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.shape(0), request.shape(1), request.output().shape);
  if (g.rank > 3 || request.dtype() != DType::i32) return {};
  return [g](const KernelArgs& args) {
    convolve(g, args.input<std::uint32_t>(0), args.input<std::uint32_t>(1),
             args.input<std::uint32_t>(2), args.output<std::uint32_t>());
  };
}

Kernel make_conv_input_grad(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.output().shape, request.shape(1), request.shape(0));
  Kernel kernel;
  if (g.rank > 3) return kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [g](const KernelArgs& args) {
      const T* const addend = args.input<T>(2);
      convolve_back(g, args.input<T>(0), args.input<T>(1), args.output<T>(),
                    [&](std::int64_t plane, T* to) {
                      const T* const from = addend + plane * g.input_plane();
                      if (addend == nullptr) {
                        std::fill_n(to, g.input_plane(), T(0));
                      } else if (from != to) {
                        std::copy_n(from, g.input_plane(), to);
                      }
                    });
    };
  });
  return kernel;
}

Kernel make_conv_transpose(KernelRequest& request) {
  const ConvGeometry g = transposed_geometry(request.node(), request.output().shape,
                                             request.shape(1), request.shape(0));
  Kernel kernel;
  if (g.rank > 3) return kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [g](const KernelArgs& args) {
      const T* const bias = args.input<T>(2);
      convolve_back(g, args.input<T>(0), args.input<T>(1), args.output<T>(),
                    [&](std::int64_t plane, T* to) {
                      const std::int64_t channel = plane % (g.groups * g.inputs);
                      std::fill_n(to, g.input_plane(), bias == nullptr ? T(0) : bias[channel]);
                    });
    };
  });
  return kernel;
}

Kernel make_conv_weight_grad(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.shape(0), request.output().shape, request.shape(1));
  Kernel kernel;
  if (g.rank > 3) return kernel;
  request.need_workspace(bytes_of(DType::f64, request.output().shape.size()));
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    const bool has_bias = request.has_output(1);
    kernel = [g, has_bias](const KernelArgs& args) {
      correlate(g, args.input<T>(0), args.input<T>(1), args.output<T>(),
                static_cast<double*>(args.workspace));
      if (has_bias) sum_channels(g, args.input<T>(1), args.output<T>(1));
    };
  });
  return kernel;
}

}  // namespace

void register_conv_cpu(KernelRegistry& registry) {
  registry.add({.op = "Conv", .name = "plain", .make = make_conv});
  registry.add({.op = "Conv", .name = "plain_integer", .make = make_integer_conv});
  registry.add(
      {.op = "ConvClamp", .domain = kInternalDomain, .name = "plain", .make = make_conv_clamp});
  registry.add({.op = "ConvTranspose", .name = "plain", .make = make_conv_transpose});
  registry.add({.op = "ConvInputGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_conv_input_grad});
  registry.add({.op = "ConvWeightGrad",
                .domain = kInternalDomain,
                .name = "plain",
                .make = make_conv_weight_grad});
}

}  // namespace graft
