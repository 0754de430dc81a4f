// Pooling over images in channels-last order: the innermost loop runs over channels, so that
// windows of any size and place vectorise alike. Planes in row-major order have one channel.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/lanes.h"
#include "core/ops/pool/pool_argmax.h"
#include "core/ops/pool/pool_channels_last.h"
#include "core/ops/pool/pool_windows.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Elements that are computed together: vectors of f32, in which bf16 is computed as well, single
/// ones of f64.
template <class T, class Body>
void for_each_group(std::int64_t count, Body&& body) {
  if constexpr (!std::is_same_v<T, double>) {
    for_each_lanes(count,
                   [&]<int lanes>(std::int64_t c) { body.template operator()<Lanes<lanes>>(c); });
  } else {
    for (std::int64_t c = 0; c < count; ++c) body.template operator()<T>(c);
  }
}
template <class V, class T>
V load_as(const T* from) {
  if constexpr (std::is_same_v<V, double>) {
    return static_cast<V>(*from);
  } else {
    return load<lane_count<V>()>(from);
  }
}
template <class T, class V>
void store_as(T* to, const V& v) {
  if constexpr (std::is_same_v<V, double>) {
    *to = static_cast<T>(v);
  } else {
    store(to, v);
  }
}

/// A run of outputs along a row, whose windows have the same taps. `known` is the number of taps
/// where the compiler may know it, so that loops over them unroll, else 0.
template <int known, class T>
struct MaxRun {
  template <class Body>
  void for_each_tap(Body&& body) const {
    if constexpr (known > 0) {
      unroll<known>([&]<int tap>() { body(tap); });
    } else {
      for (std::int64_t tap = 0; tap < taps.count; ++tap) body(tap);
    }
  }

  /// `argmax`, unless it is null, gets the tap of the first maximum.
  void maximum(const T* x, T* y, std::uint8_t* argmax) const {
    if (argmax == nullptr) {
      find<false>(x, y, argmax);
    } else {
      find<true>(x, y, argmax);
    }
  }
  template <bool finds_argmax>
  void find(const T* x, T* y, std::uint8_t* argmax) const {
    for (std::int64_t i = 0; i < count; ++i, x += step, y += channels) {
      for_each_group<T>(channels, [=, this]<class V>(std::int64_t c) {
        V best = load_as<V>(x + taps[0] + c);
        V winner{};
        for_each_tap([&](std::int64_t tap) {
          if (tap == 0) return;
          const V value = load_as<V>(x + taps[tap] + c);
          if (finds_argmax) {
            winner = if_greater(value, best, V{} + static_cast<float>(tap), winner);
          }
          best = greater_of(best, value);
        });
        store_as(y + c, best);
        if constexpr (finds_argmax) store_as(argmax + i * channels + c, winner);
      });
    }
  }

  template <bool adds>
  void gradient(const std::uint8_t* argmax, const T* dy, T* dx) const {
    for (std::int64_t i = 0; i < count; ++i, argmax += channels, dy += channels, dx += step) {
      for_each_group<T>(channels, [=, this]<class V>(std::int64_t c) {
        const V winner = load_as<V>(argmax + c);
        const V gradient = load_as<V>(dy + c);
        for_each_tap([&](std::int64_t tap) {
          T* const target = dx + taps[tap] + c;
          V sum = winner == V{} + static_cast<float>(tap) ? gradient : V{};
          if constexpr (adds) sum += load_as<V>(target);
          store_as(target, sum);
        });
      });
    }
  }

  const PoolTaps& taps;
  std::int64_t count;
  std::int64_t step;
  std::int64_t channels;
};

/// Calls body(MaxRun).
template <class T, class Body>
void with_run(const PoolTaps& taps, std::int64_t count, std::int64_t step, std::int64_t channels,
              Body&& body) {
  if (taps.count == 4) return body(MaxRun<4, T>{taps, count, step, channels});
  if (taps.count == 9) return body(MaxRun<9, T>{taps, count, step, channels});
  body(MaxRun<0, T>{taps, count, step, channels});
}

/// `argmax` may be null.
template <class T>
void max_pool(const PoolImages& g, const PoolWindows& windows, const T* x, T* y,
              std::uint8_t* argmax) {
  g.for_each_row([&](std::int64_t image, std::int64_t row, std::int64_t) {
    const T* const from = x + image * g.input_positions() * g.channels;
    const std::int64_t to = (image * g.output_positions() + row * g.axes[2].output) * g.channels;
    windows.visit_row(
        g, row, [&](const PoolTaps& taps, std::int64_t start, std::int64_t w, std::int64_t count) {
          const std::int64_t at = to + w * g.channels;
          std::uint8_t* const places = argmax == nullptr ? nullptr : argmax + at;
          if (taps.count == 0) {  // the window lies in the padding
            std::fill_n(y + at, g.channels, T(-std::numeric_limits<float>::infinity()));
            if (places != nullptr) std::fill_n(places, g.channels, std::uint8_t{0});
            return;
          }
          with_run<T>(taps, count, windows.step(), g.channels,
                      [&](const auto& run) { run.maximum(from + start, y + at, places); });
        });
  });
}

template <class T>
void max_pool_grad(const PoolImages& g, const PoolWindows& windows, const std::uint8_t* argmax,
                   const T* dy, T* dx) {
  g.for_each_image([&](std::int64_t image) {
    const std::int64_t outputs = image * g.output_positions() * g.channels;
    T* const to = dx + image * g.input_positions() * g.channels;
    if (!windows.cover_all) std::fill_n(to, g.input_positions() * g.channels, T(0.0F));
    for (std::int64_t row = 0; row < g.rows(); ++row) {
      windows.visit_row(
          g, row,
          [&](const PoolTaps& taps, std::int64_t start, std::int64_t w, std::int64_t count) {
            if (taps.count == 0) return;
            const std::int64_t at = outputs + (row * g.axes[2].output + w) * g.channels;
            with_run<T>(taps, count, windows.step(), g.channels, [&](const auto& run) {
              if (windows.are_disjoint) {
                run.template gradient<false>(argmax + at, dy + at, to + start);
              } else {
                run.template gradient<true>(argmax + at, dy + at, to + start);
              }
            });
          });
    }
  });
}

/// How many elements the window of an output averages.
double window_size(const WindowAxes& counted, const std::array<std::int64_t, 3>& output) {
  double size = 1;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    size *= static_cast<double>(counted[i].taps_of_output(output[i]).count());
  }
  return std::max(1.0, size);
}

template <class T>
void average_pool(const PoolImages& g, const WindowAxes& counted, const T* x, T* y) {
  g.for_each_row([&](std::int64_t image, std::int64_t first, std::int64_t last) {
    const T* const from = x + image * g.input_positions() * g.channels;
    T* const to = y + image * g.output_positions() * g.channels;
    g.for_each_output(first, last, [&](std::int64_t at, const auto& output) {
      T* const sum = to + at * g.channels;
      std::fill_n(sum, g.channels, T(0));
      g.for_each_tap(output, [&](std::int64_t tap) {
        const T* const values = from + tap * g.channels;
        for (std::int64_t c = 0; c < g.channels; ++c) sum[c] += values[c];
      });
      const T size = static_cast<T>(window_size(counted, output));
      for (std::int64_t c = 0; c < g.channels; ++c) sum[c] /= size;
    });
  });
}

template <class T>
void average_pool_grad(const PoolImages& g, const WindowAxes& counted, const T* dy, T* dx) {
  std::fill_n(dx, g.batch * g.input_positions() * g.channels, T(0));
  g.for_each_channel_block([&](std::int64_t image, std::int64_t channel, std::int64_t count) {
    g.for_each_output(0, g.rows(), [&](std::int64_t at, const auto& output) {
      const T* const gradient = dy + (image * g.output_positions() + at) * g.channels + channel;
      const T size = static_cast<T>(window_size(counted, output));
      g.for_each_tap(output, [&](std::int64_t tap) {
        T* const values = dx + (image * g.input_positions() + tap) * g.channels + channel;
        for (std::int64_t c = 0; c < count; ++c) values[c] += gradient[c] / size;
      });
    });
  });
}

/// The mean of each channel, summed in f64.
template <class T>
void global_average_pool(std::int64_t channels, std::int64_t positions, std::int64_t batch,
                         const T* x, T* y) {
  const std::int64_t blocks = (channels + kPoolChannels - 1) / kPoolChannels;
  parallel_for(batch * blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t at = first; at < last; ++at) {
      const std::int64_t channel = at % blocks * kPoolChannels;
      const std::int64_t count = std::min(kPoolChannels, channels - channel);
      const T* const image = x + at / blocks * positions * channels + channel;
      std::array<double, kPoolChannels> sum{};
      for (std::int64_t p = 0; p < positions; ++p) {
        for (std::int64_t c = 0; c < count; ++c) {
          sum[static_cast<std::size_t>(c)] += static_cast<double>(image[p * channels + c]);
        }
      }
      T* const mean = y + at / blocks * channels + channel;
      for (std::int64_t c = 0; c < count; ++c) {
        mean[c] = static_cast<T>(sum[static_cast<std::size_t>(c)] / static_cast<double>(positions));
      }
    }
  });
}

bool fits(const KernelRequest& request, const Shape& x) {
  return request.has_channels_last() && PoolGeometry::fits(x);
}

/// make.operator()<T>() for the request's type.
template <class Types, class Make>
Kernel for_types(Types types, const KernelRequest& request, Make&& make) {
  Kernel kernel;
  const auto take = [&]<class T>() { kernel = make.template operator()<T>(); };
  visit_kernel_dtype(types, request.dtype(), take);
  return kernel;
}
template <class Make>
Kernel for_float(const KernelRequest& request, Make&& make) {
  return for_types(FloatTypes{}, request, std::forward<Make>(make));
}

/// Whether so few windows share an element that their gradients may be summed in bf16.
bool overlap_little(const PoolImages& g) {
  constexpr std::int64_t kMost = 4;
  std::int64_t windows = 1;
  for (const WindowAxis& axis : g.axes) {
    const std::int64_t along = (axis.extent() + axis.stride - 1) / axis.stride;
    if (along > kMost) return false;
    windows *= along;
  }
  return windows <= kMost;
}

/// A maximum is one of the elements, so bf16 loses nothing.
using MaxPoolTypes = TypeList<float, double, BFloat16>;

bool counts_padding(const KernelRequest& request) {
  return request.attributes().get_int("count_include_pad", 0) != 0;
}

Kernel make_max_pool(KernelRequest& request) {
  if (!fits(request, request.shape()) || request.has_output(1)) return {};
  const PoolImages g(request, request.shape());
  if (!has_few_taps(g)) return {};
  return for_types(MaxPoolTypes{}, request, [&]<class T>() {
    return Kernel([g, windows = PoolWindows(g)](const KernelArgs& args) {
      max_pool(g, windows, args.input<T>(0), args.output<T>(), nullptr);
    });
  });
}

/// Images of the request's layout.
std::optional<PoolImages> images_of(const KernelRequest& request, const Shape& x) {
  if (!PoolGeometry::fits(x)) return std::nullopt;
  PoolImages images(request, x);
  if (!request.has_channels_last()) {
    images.batch = checked_multiply(images.batch, images.channels);
    images.channels = 1;
  }
  return has_few_taps(images) ? std::optional(images) : std::nullopt;
}

/// What a MaxPoolWithArgmax does to its maxima: on the CPU by a pass of its own, since only the
/// plans of cards ask for it.
struct PoolFinish {
  std::int64_t size;
  std::int64_t channels;
  std::int64_t step;  ///< from one channel to the next
  bool has_relu;

  explicit PoolFinish(const KernelRequest& request)
      : size(request.output().shape.size()),
        channels(request.shape()[1]),
        step(request.has_channels_last()
                 ? 1
                 : request.output().shape.size(2, request.output().shape.rank())),
        has_relu(request.attributes().get_int("relu", 0) != 0) {}

  /// `bias` may be null.
  template <class T>
  void run(const T* bias, T* y, std::uint8_t* argmax) const {
    using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
    if (bias == nullptr && !has_relu) return;
    for (std::int64_t i = 0; i < size; ++i) {
      auto value = static_cast<Sum>(y[i]);
      if (bias != nullptr) value += static_cast<Sum>(bias[i / step % channels]);
      const bool passes = !has_relu || !(value <= Sum{0});
      y[i] = static_cast<T>(passes ? value : Sum{0});
      if (!passes) argmax[i] = kNoTap;
    }
  }
};

Kernel make_max_pool_with_argmax(KernelRequest& request) {
  const std::optional<PoolImages> g = images_of(request, request.shape());
  if (!g) return {};
  return for_types(MaxPoolTypes{}, request, [&]<class T>() {
    return Kernel(
        [g = *g, windows = PoolWindows(*g), finish = PoolFinish(request)](const KernelArgs& args) {
          auto* const argmax = args.output<std::uint8_t>(1);
          max_pool(g, windows, args.input<T>(0), args.output<T>(), argmax);
          finish.run(args.input<T>(1), args.output<T>(), argmax);
        });
  });
}

Kernel make_max_pool_grad_with_argmax(KernelRequest& request) {
  const std::optional<PoolImages> g = images_of(request, request.output().shape);
  if (!g) return {};
  if (request.dtype() == DType::bf16 && !overlap_little(*g)) return {};
  return for_types(MaxPoolTypes{}, request, [&]<class T>() {
    return Kernel([g = *g, windows = PoolWindows(*g)](const KernelArgs& args) {
      max_pool_grad(g, windows, args.input<std::uint8_t>(1), args.input<T>(0), args.output<T>());
    });
  });
}

Kernel make_average_pool(KernelRequest& request) {
  if (!fits(request, request.shape())) return {};
  const PoolImages g(request, request.shape());
  const WindowAxes counted = counted_axes(g.axes, counts_padding(request));
  return for_float(request, [&]<class T>() {
    return Kernel([g, counted](const KernelArgs& args) {
      average_pool(g, counted, args.input<T>(0), args.output<T>());
    });
  });
}

Kernel make_average_pool_grad(KernelRequest& request) {
  if (!fits(request, request.output().shape)) return {};
  const PoolImages g(request, request.output().shape);
  const WindowAxes counted = counted_axes(g.axes, counts_padding(request));
  return for_float(request, [&]<class T>() {
    return Kernel([g, counted](const KernelArgs& args) {
      average_pool_grad(g, counted, args.input<T>(0), args.output<T>());
    });
  });
}

Kernel make_global_average_pool(KernelRequest& request) {
  if (!request.has_channels_last()) return {};
  const Shape& x = request.shape();
  return for_float(request, [&]<class T>() {
    return Kernel(
        [batch = x[0], channels = x[1], positions = x.size(2, x.rank())](const KernelArgs& args) {
          global_average_pool(channels, positions, batch, args.input<T>(0), args.output<T>());
        });
  });
}

}  // namespace

void register_channels_last_pools(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add(
        {.op = op, .domain = domain, .name = "channels_last", .make = make, .knows_layouts = true});
  };
  add("MaxPool", "", make_max_pool);
  add("AveragePool", "", make_average_pool);
  add("AveragePoolGrad", kInternalDomain, make_average_pool_grad);
  add("GlobalAveragePool", "", make_global_average_pool);
  const auto add_for_any_layout = [&](std::string_view op, KernelFactory make) {
    registry.add({.op = op,
                  .domain = kInternalDomain,
                  .name = "images",
                  .make = make,
                  .knows_layouts = true});
  };
  add_for_any_layout("MaxPoolWithArgmax", make_max_pool_with_argmax);
  add_for_any_layout("MaxPoolGradWithArgmax", make_max_pool_grad_with_argmax);
}

}  // namespace graft
