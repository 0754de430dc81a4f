// Pooling over images in channels-last order: the innermost loop runs over channels, so that
// windows of any size and place vectorise alike.
#include <algorithm>

#include "core/ops/pool_channels_last_internal.h"
#include "core/ops/pool_geometry_internal.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Channels that are worked on at a time, few enough for the stack.
constexpr std::int64_t kChannels = 64;

struct Geometry {
  Geometry(const KernelRequest& request, const Shape& x)
      : batch(x[0]), channels(x[1]), axes(PoolGeometry(request.node(), x).axes) {}

  std::int64_t input_positions() const { return axes[0].input * axes[1].input * axes[2].input; }
  std::int64_t output_positions() const { return axes[0].output * axes[1].output * axes[2].output; }

  /// Calls body(y, taps) for outputs of rows [first, last) of depth x height, y the position of the
  /// output in its image.
  template <class Body>
  void for_each_output(std::int64_t first, std::int64_t last, Body&& body) const {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t d = row / axes[1].output;
      const std::int64_t h = row % axes[1].output;
      for (std::int64_t w = 0; w < axes[2].output; ++w) {
        body(row * axes[2].output + w, std::array<std::int64_t, 3>{d, h, w});
      }
    }
  }
  std::int64_t rows() const { return axes[0].output * axes[1].output; }

  /// Calls body(x) with the position in the image of each tap, in row-major order.
  template <class Body>
  void for_each_tap(const std::array<std::int64_t, 3>& output, Body&& body) const {
    const auto& [depth, height, width] = axes;
    const Span ds = depth.taps_of_output(output[0]);
    const Span hs = height.taps_of_output(output[1]);
    const Span ws = width.taps_of_output(output[2]);
    for (std::int64_t kd = ds.first; kd < ds.last; ++kd) {
      for (std::int64_t kh = hs.first; kh < hs.last; ++kh) {
        const std::int64_t row =
            depth.position(output[0], kd) * height.input + height.position(output[1], kh);
        for (std::int64_t kw = ws.first; kw < ws.last; ++kw) {
          body(row * width.input + width.position(output[2], kw));
        }
      }
    }
  }

  /// Calls body(image, first row, last row) over all threads: rows of outputs are independent.
  template <class Body>
  void for_each_row(Body&& body) const {
    constexpr std::int64_t kElementsWorthAThread = 16384;
    const std::int64_t work = std::max<std::int64_t>(1, axes[2].output * channels);
    parallel_for(batch * rows(), kElementsWorthAThread / work + 1,
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t at = first; at < last; ++at) {
                     body(at / rows(), at % rows(), at % rows() + 1);
                   }
                 });
  }

  /// Calls body(image, first channel, count) over all threads: windows that overlap share inputs,
  /// channels do not.
  template <class Body>
  void for_each_channel_block(Body&& body) const {
    const std::int64_t blocks = (channels + kChannels - 1) / kChannels;
    parallel_for(batch * blocks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t at = first; at < last; ++at) {
        const std::int64_t channel = at % blocks * kChannels;
        body(at / blocks, channel, std::min(kChannels, channels - channel));
      }
    });
  }

  std::int64_t batch;
  std::int64_t channels;
  WindowAxes axes;
};

template <class T>
void max_pool(const Geometry& g, const T* x, T* y) {
  g.for_each_row([&](std::int64_t image, std::int64_t first, std::int64_t last) {
    const T* const from = x + image * g.input_positions() * g.channels;
    T* const to = y + image * g.output_positions() * g.channels;
    g.for_each_output(first, last, [&](std::int64_t at, const auto& output) {
      T* const best = to + at * g.channels;
      bool is_first = true;
      g.for_each_tap(output, [&](std::int64_t tap) {
        const T* const values = from + tap * g.channels;
        if (is_first) {
          std::copy_n(values, g.channels, best);
        } else {
          for (std::int64_t c = 0; c < g.channels; ++c) best[c] = greater_of(best[c], values[c]);
        }
        is_first = false;
      });
    });
  });
}

/// The gradient goes to the first maximum, whose tap is found again.
template <class T>
void max_pool_grad(const Geometry& g, const T* x, const T* dy, T* dx) {
  std::fill_n(dx, g.batch * g.input_positions() * g.channels, T(0));
  g.for_each_channel_block([&](std::int64_t image, std::int64_t channel, std::int64_t count) {
    const std::int64_t image_at = image * g.input_positions() * g.channels + channel;
    g.for_each_output(0, g.rows(), [&](std::int64_t at, const auto& output) {
      std::array<T, kChannels> best;
      std::array<T, kChannels> winner;  // number of the winning tap
      T number = 0;
      g.for_each_tap(output, [&](std::int64_t tap) {
        const T* const values = x + image_at + tap * g.channels;
        for (std::int64_t c = 0; c < count; ++c) {
          const auto k = static_cast<std::size_t>(c);
          const bool is_first = number == T(0);
          winner[k] = is_first ? T(0) : if_greater(values[c], best[k], number, winner[k]);
          best[k] = is_first ? values[c] : greater_of(best[k], values[c]);
        }
        number += T(1);
      });
      number = 0;
      const T* const gradient = dy + (image * g.output_positions() + at) * g.channels + channel;
      g.for_each_tap(output, [&](std::int64_t tap) {
        T* const values = dx + image_at + tap * g.channels;
        for (std::int64_t c = 0; c < count; ++c) {
          values[c] += winner[static_cast<std::size_t>(c)] == number ? gradient[c] : T(0);
        }
        number += T(1);
      });
    });
  });
}

/// How many elements the window of an output averages.
std::int64_t window_size(const WindowAxes& counted, const std::array<std::int64_t, 3>& output) {
  std::int64_t size = 1;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    size *= counted[i].taps_of_output(output[i]).count();
  }
  return std::max<std::int64_t>(1, size);
}

template <class T>
void average_pool(const Geometry& g, const WindowAxes& counted, const T* x, T* y) {
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
void average_pool_grad(const Geometry& g, const WindowAxes& counted, const T* dy, T* dx) {
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
  const std::int64_t blocks = (channels + kChannels - 1) / kChannels;
  parallel_for(batch * blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t at = first; at < last; ++at) {
      const std::int64_t channel = at % blocks * kChannels;
      const std::int64_t count = std::min(kChannels, channels - channel);
      const T* const image = x + at / blocks * positions * channels + channel;
      std::array<double, kChannels> sum{};
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
  return request.has_channels_last() && PoolGeometry::fits(x) && !request.has_output(1);
}

/// make.operator()<T>() for the request's type.
template <class Make>
Kernel for_float(const KernelRequest& request, Make&& make) {
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(),
              [&]<class T>() { kernel = make.template operator()<T>(); });
  return kernel;
}

bool counts_padding(const KernelRequest& request) {
  return request.attributes().get_int("count_include_pad", 0) != 0;
}

Kernel make_max_pool(KernelRequest& request) {
  if (!fits(request, request.shape())) return {};
  return for_float(request, [g = Geometry(request, request.shape())]<class T>() {
    return Kernel([g](const KernelArgs& args) { max_pool(g, args.input<T>(0), args.output<T>()); });
  });
}

Kernel make_max_pool_grad(KernelRequest& request) {
  if (!fits(request, request.shape())) return {};
  return for_float(request, [g = Geometry(request, request.shape())]<class T>() {
    return Kernel([g](const KernelArgs& args) {
      max_pool_grad(g, args.input<T>(0), args.input<T>(1), args.output<T>());
    });
  });
}

Kernel make_average_pool(KernelRequest& request) {
  if (!fits(request, request.shape())) return {};
  const Geometry g(request, request.shape());
  const WindowAxes counted = counted_axes(g.axes, counts_padding(request));
  return for_float(request, [&]<class T>() {
    return Kernel([g, counted](const KernelArgs& args) {
      average_pool(g, counted, args.input<T>(0), args.output<T>());
    });
  });
}

Kernel make_average_pool_grad(KernelRequest& request) {
  if (!fits(request, request.output().shape)) return {};
  const Geometry g(request, request.output().shape);
  const WindowAxes counted = counted_axes(g.axes, counts_padding(request));
  return for_float(request, [&]<class T>() {
    return Kernel([g, counted](const KernelArgs& args) {
      average_pool_grad(g, counted, args.input<T>(0), args.output<T>());
    });
  });
}

Kernel make_global_average_pool(KernelRequest& request) {
  if (!request.has_channels_last()) return {};
  const Shape x = request.shape();
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
  add("MaxPoolGrad", kInternalDomain, make_max_pool_grad);
  add("AveragePool", "", make_average_pool);
  add("AveragePoolGrad", kInternalDomain, make_average_pool_grad);
  add("GlobalAveragePool", "", make_global_average_pool);
}

}  // namespace graft
