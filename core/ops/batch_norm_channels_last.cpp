// Batch normalization of rows of channels in f32, or stored in bf16: images in channels-last order,
// or plain features. Threads share out rows; each sums its rows per channel into its part of the
// workspace, the parts are added in order, and a second pass over the rows writes the result. How
// rows are cut depends on shapes alone, so the result does not depend on the number of threads.
#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/batch_norm_internal.h"
#include "core/ops/lanes_internal.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

template <class V>
void add_to(double* sums, const V& v) {
  float parts[sizeof(V) / sizeof(float)];
  std::memcpy(parts, &v, sizeof(v));
  for (const float part : parts) *sums++ += static_cast<double>(part);
}

/// y = activation((x - mean) * slope + bias) of some channels, and which gradients pass.
template <int lanes>
struct Affine {
  using V = Lanes<lanes>;

  template <class T>
  V at(const T* x) const {
    return (load<lanes>(x) - mean) * slope + bias;
  }
  template <class T>
  V activated(const T* x, const FusedActivation& activation) const {
    const V t = at(x);
    const V low = V{} + activation.lower;
    const V high = V{} + activation.upper;
    const V raised = t < low ? low : t;
    return raised > high ? high : raised;
  }
  /// dy where the activation lets it pass, else 0.
  template <class T>
  V passed(const T* x, const T* dy, const FusedActivation& activation) const {
    const V t = at(x);
    const V gradient = load<lanes>(dy);
    const V zero{};
    const V low = V{} + activation.lower;
    if (activation.is_strict) return t > low ? gradient : zero;
    const V above = t < low ? zero : gradient;
    return t > V{} + activation.upper ? zero : above;
  }

  V mean;
  V slope;
  V bias;
};

/// [rows, channels], cut into chunks of rows.
struct Rows {
  explicit Rows(const ChannelView& view) : count(view.outer), channels(view.channels) {
    constexpr std::int64_t kLeastElements = 8192;
    constexpr std::int64_t kMostChunks = 64;
    chunks = std::clamp<std::int64_t>(count * channels / kLeastElements, 1, kMostChunks);
  }

  /// Calls body(chunk, first row, last row) over all threads.
  template <class Body>
  void for_each_chunk(Body&& body) const {
    parallel_for(chunks, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t chunk = first; chunk < last; ++chunk) {
        body(chunk, chunk * count / chunks, (chunk + 1) * count / chunks);
      }
    });
  }

  /// Calls body.operator()<lanes>(channel, first row, last row): few enough rows to stay in the
  /// cache while all channels pass by.
  template <class Body>
  void for_each_tile(std::int64_t first, std::int64_t last, Body&& body) const {
    const std::int64_t tile = std::max<std::int64_t>(8, 8192 / std::max<std::int64_t>(1, channels));
    for (; first < last; first += tile) {
      const std::int64_t end = std::min(last, first + tile);
      for_each_lanes(channels, [&]<int lanes>(std::int64_t c) {
        body.template operator()<lanes>(c, first, end);
      });
    }
  }

  std::int64_t count;
  std::int64_t channels;
  std::int64_t chunks;
};

/// Parts of the workspace: two sums a channel and chunk, then rows of coefficients.
class Scratch {
 public:
  Scratch(const Rows& rows, void* workspace)
      : channels_(rows.channels),
        chunks_(rows.chunks),
        sums_(static_cast<double*>(workspace)),
        floats_(reinterpret_cast<float*>(sums_ + 2 * channels_ * chunks_)) {}
  static std::size_t bytes(const Rows& rows, int coefficients) {
    return static_cast<std::size_t>(rows.channels) *
           (static_cast<std::size_t>(rows.chunks) * 2 * sizeof(double) +
            static_cast<std::size_t>(coefficients) * sizeof(float));
  }
  double* sums(std::int64_t chunk, int which) const {
    return sums_ + (2 * chunk + which) * channels_;
  }
  float* coefficients(int which) const { return floats_ + which * channels_; }
  double total(int which, std::int64_t channel) const {
    double sum = 0.0;
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) sum += sums(chunk, which)[channel];
    return sum;
  }

 private:
  std::int64_t channels_;
  std::int64_t chunks_;
  double* sums_;
  float* floats_;
};

/// Mean and variance from sums of differences to the first row, which lose no digits to a large
/// mean, in one pass. T: float or BFloat16, of x and y; the rest is f32.
template <class T>
struct Forward {
  Rows rows;
  BatchNormSettings by;
  FusedActivation activation;

  void operator()(const KernelArgs& args) const {
    const Scratch scratch(rows, args.workspace);
    const auto* const x = args.input<T>(0);
    rows.for_each_chunk([&](std::int64_t chunk, std::int64_t first, std::int64_t last) {
      sum(scratch, x, chunk, first, last);
    });
    finish_statistics(scratch, x, args);
    rows.for_each_chunk([&](std::int64_t, std::int64_t first, std::int64_t last) {
      write(scratch, x, args.output<T>(), first, last, args.input<float>(2));
    });
  }

  void sum(const Scratch& scratch, const T* x, std::int64_t chunk, std::int64_t first,
           std::int64_t last) const {
    double* const sums = scratch.sums(chunk, 0);
    double* const squares = scratch.sums(chunk, 1);
    std::fill_n(sums, 2 * rows.channels, 0.0);
    rows.for_each_tile(first, last, [&]<int lanes>(std::int64_t c, std::int64_t r, std::int64_t n) {
      const Lanes<lanes> shift = load<lanes>(x + c);
      Lanes<lanes> a{};
      Lanes<lanes> b{};
      for (; r < n; ++r) {
        const Lanes<lanes> d = load<lanes>(x + r * rows.channels + c) - shift;
        a += d;
        b += d * d;
      }
      add_to(sums + c, a);
      add_to(squares + c, b);
    });
  }

  void finish_statistics(const Scratch& scratch, const T* x, const KernelArgs& args) const {
    const auto n = static_cast<double>(rows.count);
    const double unbiased = n > 1 ? n / (n - 1) : 1.0;
    for (std::int64_t c = 0; c < rows.channels; ++c) {
      const double offset = scratch.total(0, c) / n;
      const double mean = static_cast<double>(static_cast<float>(x[c])) + offset;
      const double variance = std::max(0.0, scratch.total(1, c) / n - offset * offset);
      const double inv_std = 1.0 / std::sqrt(variance + by.epsilon);
      const double slope = static_cast<double>(args.input<float>(1)[c]) * inv_std;
      scratch.coefficients(0)[c] = static_cast<float>(mean);
      scratch.coefficients(1)[c] = static_cast<float>(slope);
      args.output<float>(1)[c] = static_cast<float>(mean);
      args.output<float>(2)[c] = static_cast<float>(inv_std);
      const auto mix = [&](int running, double fresh) {
        if (args.output<float>(running) == nullptr) return;
        const auto old = static_cast<double>(args.input<float>(running)[c]);
        args.output<float>(running)[c] =
            static_cast<float>(old * by.momentum + fresh * (1.0 - by.momentum));
      };
      mix(3, mean);
      mix(4, variance * unbiased);
    }
  }

  void write(const Scratch& scratch, const T* x, T* y, std::int64_t first, std::int64_t last,
             const float* bias) const {
    const float* const mean = scratch.coefficients(0);
    const float* const slope = scratch.coefficients(1);
    rows.for_each_tile(first, last, [&]<int lanes>(std::int64_t c, std::int64_t r, std::int64_t n) {
      const Affine<lanes> affine{load<lanes>(mean + c), load<lanes>(slope + c),
                                 load<lanes>(bias + c)};
      for (; r < n; ++r) {
        const std::int64_t at = r * rows.channels + c;
        store(y + at, activation.is_on ? affine.activated(x + at, activation) : affine.at(x + at));
      }
    });
  }
};

/// See `differentiate` of the plain kernel for the formula. T: of x, dy and dx.
template <class T>
struct Backward {
  Rows rows;
  FusedActivation activation;

  template <int lanes>
  Lanes<lanes> passed(const Affine<lanes>& affine, const T* x, const T* dy) const {
    return activation.is_on ? affine.passed(x, dy, activation) : load<lanes>(dy);
  }
  template <int lanes>
  Affine<lanes> affine(const Scratch& scratch, const KernelArgs& args, std::int64_t c) const {
    const float* const bias = args.input<float>(5);
    return {load<lanes>(args.input<float>(3) + c), load<lanes>(scratch.coefficients(0) + c),
            bias == nullptr ? Lanes<lanes>{} : load<lanes>(bias + c)};
  }

  void operator()(const KernelArgs& args) const {
    const Scratch scratch(rows, args.workspace);
    for (std::int64_t c = 0; c < rows.channels; ++c) {
      scratch.coefficients(0)[c] = args.input<float>(2)[c] * args.input<float>(4)[c];
    }
    rows.for_each_chunk([&](std::int64_t chunk, std::int64_t first, std::int64_t last) {
      sum(scratch, args, chunk, first, last);
    });
    finish_sums(scratch, args);
    rows.for_each_chunk([&](std::int64_t, std::int64_t first, std::int64_t last) {
      write(scratch, args, first, last);
    });
  }

  void sum(const Scratch& scratch, const KernelArgs& args, std::int64_t chunk, std::int64_t first,
           std::int64_t last) const {
    const auto* const x = args.input<T>(0);
    const auto* const dy = args.input<T>(1);
    double* const sums = scratch.sums(chunk, 0);
    double* const moments = scratch.sums(chunk, 1);
    std::fill_n(sums, 2 * rows.channels, 0.0);
    rows.for_each_tile(first, last, [&]<int lanes>(std::int64_t c, std::int64_t r, std::int64_t n) {
      const Affine<lanes> by = affine<lanes>(scratch, args, c);
      Lanes<lanes> a{};
      Lanes<lanes> b{};
      for (; r < n; ++r) {
        const std::int64_t at = r * rows.channels + c;
        const Lanes<lanes> gradient = passed<lanes>(by, x + at, dy + at);
        a += gradient;
        b += gradient * (load<lanes>(x + at) - by.mean);
      }
      add_to(sums + c, a);
      add_to(moments + c, b);
    });
  }

  void finish_sums(const Scratch& scratch, const KernelArgs& args) const {
    const double share = 1.0 / static_cast<double>(rows.count);
    for (std::int64_t c = 0; c < rows.channels; ++c) {
      const double sum = scratch.total(0, c);
      const double moment = scratch.total(1, c);
      const auto inv_std = static_cast<double>(args.input<float>(4)[c]);
      const auto slope = static_cast<double>(scratch.coefficients(0)[c]);
      args.output<float>(1)[c] = static_cast<float>(moment * inv_std);
      args.output<float>(2)[c] = static_cast<float>(sum);
      scratch.coefficients(1)[c] = static_cast<float>(-slope * inv_std * inv_std * moment * share);
      scratch.coefficients(2)[c] = static_cast<float>(-slope * sum * share);
    }
  }

  void write(const Scratch& scratch, const KernelArgs& args, std::int64_t first,
             std::int64_t last) const {
    const auto* const x = args.input<T>(0);
    const auto* const dy = args.input<T>(1);
    auto* const dx = args.output<T>();
    rows.for_each_tile(first, last, [&]<int lanes>(std::int64_t c, std::int64_t r, std::int64_t n) {
      const Affine<lanes> by = affine<lanes>(scratch, args, c);
      const Lanes<lanes> curve = load<lanes>(scratch.coefficients(1) + c);
      const Lanes<lanes> offset = load<lanes>(scratch.coefficients(2) + c);
      for (; r < n; ++r) {
        const std::int64_t at = r * rows.channels + c;
        store(dx + at, passed<lanes>(by, x + at, dy + at) * by.slope +
                           (load<lanes>(x + at) - by.mean) * curve + offset);
      }
    });
  }
};

bool takes(const KernelRequest& request) {
  const ChannelView view(request);
  const bool is_f32 = request.dtype() == DType::f32;
  const bool is_short = request.dtype() == DType::bf16 && request.dtype(2) == DType::f32;
  return (is_f32 || is_short) && view.inner == 1 && view.count() * view.channels > 0;
}

Kernel make_training(KernelRequest& request) {
  if (!takes(request)) return {};
  const Rows rows{ChannelView(request)};
  request.need_workspace(Scratch::bytes(rows, 2));
  const BatchNormSettings settings(request.attributes());
  const FusedActivation activation(request.attributes());
  if (request.dtype() == DType::bf16) return Forward<BFloat16>{rows, settings, activation};
  return Forward<float>{rows, settings, activation};
}

Kernel make_grad(KernelRequest& request) {
  if (!takes(request)) return {};
  const Rows rows{ChannelView(request)};
  request.need_workspace(Scratch::bytes(rows, 3));
  const FusedActivation activation(request.attributes());
  if (request.dtype() == DType::bf16) return Backward<BFloat16>{rows, activation};
  return Backward<float>{rows, activation};
}

}  // namespace

void register_channels_last_batch_norm(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, KernelFactory make) {
    registry.add({.op = op,
                  .domain = kInternalDomain,
                  .name = "channels_last",
                  .make = make,
                  .knows_layouts = true});
  };
  add("BatchNormTraining", make_training);
  add("BatchNormGrad", make_grad);
}

}  // namespace graft
