#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/at.h"
#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/norm/batch_norm.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// A block of channels, few enough for the stack: one thread computes their sums and then passes
/// over their elements again while they are in its cache.
struct Block {
  static constexpr std::int64_t kMost = 64;
  std::int64_t first;
  std::int64_t count;
};

template <class T>
using PerChannel = std::array<T, Block::kMost>;

template <class Body>
void for_each_block(const ChannelView& view, Body&& body) {
  // Rows are cut at whole cache lines.
  constexpr std::int64_t kRowChannels = 16;
  const std::int64_t unit = view.inner == 1 ? kRowChannels : 1;
  const std::int64_t units = (view.channels + unit - 1) / unit;
  const std::int64_t grain = kRowwiseGrain / std::max<std::int64_t>(1, view.count() * unit);
  parallel_for(units, grain + 1, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t end = std::min(last * unit, view.channels);
    for (std::int64_t channel = first * unit; channel < end; channel += Block::kMost) {
      body(Block{channel, std::min(Block::kMost, end - channel)});
    }
  });
}

/// Calls body(i, j) for element i of channel block.first + j, so that the inner loop vectorises.
template <class Body>
void for_each_element(const ChannelView& view, const Block& block, Body&& body) {
  if (view.inner == 1) {
    for (std::int64_t n = 0; n < view.outer; ++n) {
      const std::int64_t row = n * view.channels + block.first;
#pragma omp simd
      for (std::int64_t j = 0; j < block.count; ++j) body(row + j, j);
    }
    return;
  }
  for (std::int64_t j = 0; j < block.count; ++j) {
    for (std::int64_t n = 0; n < view.outer; ++n) {
      const std::int64_t start = (n * view.channels + block.first + j) * view.inner;
#pragma omp simd
      for (std::int64_t i = start; i < start + view.inner; ++i) body(i, j);
    }
  }
}

/// a[j] and b[j] become sums of f(i, j) and g(i, j) over the elements i of each channel, in f64.
template <class F, class G>
void sum_channels(const ChannelView& view, const Block& block, PerChannel<double>& a,
                  PerChannel<double>& b, F&& f, G&& g) {
  std::fill_n(a.begin(), block.count, 0.0);
  std::fill_n(b.begin(), block.count, 0.0);
  if (view.inner == 1) {
    double* const to_a = a.data();
    double* const to_b = b.data();
    for_each_element(view, block, [&](std::int64_t i, std::int64_t j) {
      to_a[j] += f(i, j);
      to_b[j] += g(i, j);
    });
    return;
  }
  for (std::int64_t j = 0; j < block.count; ++j) {
    double sum_a = 0;
    double sum_b = 0;
    for (std::int64_t n = 0; n < view.outer; ++n) {
      const std::int64_t start = (n * view.channels + block.first + j) * view.inner;
#pragma omp simd reduction(+ : sum_a, sum_b)
      for (std::int64_t i = start; i < start + view.inner; ++i) {
        sum_a += f(i, j);
        sum_b += g(i, j);
      }
    }
    at(a, j) = sum_a;
    at(b, j) = sum_b;
  }
}

struct Statistics {
  PerChannel<double> mean;
  PerChannel<double> variance;  ///< of the population
};

/// Two passes: squares of differences lose no digits to a large mean. Zeros for an empty batch.
template <class T>
void batch_statistics(const ChannelView& view, const Block& block, const T* x, Statistics& s) {
  const auto none = [](std::int64_t, std::int64_t) { return 0.0; };
  const double share = view.count() == 0 ? 0.0 : 1.0 / static_cast<double>(view.count());
  PerChannel<double> unused;
  sum_channels(
      view, block, s.mean, unused, [&](auto i, auto) { return static_cast<double>(x[i]); }, none);
  for (std::int64_t j = 0; j < block.count; ++j) at(s.mean, j) *= share;
  const double* const mean = s.mean.data();
  sum_channels(
      view, block, s.variance, unused,
      [&](auto i, auto j) {
        const double difference = static_cast<double>(x[i]) - mean[j];
        return difference * difference;
      },
      none);
  for (std::int64_t j = 0; j < block.count; ++j) at(s.variance, j) *= share;
}

/// y = (x - mean) * scale / sqrt(variance + epsilon) + bias; x and y may be one.
template <class T>
void normalize(const ChannelView& view, const Block& block, double epsilon, const Statistics& s,
               const FusedActivation& activation, const T* scale, const T* bias, const T* x, T* y) {
  PerChannel<T> mean;
  PerChannel<T> slope;
  PerChannel<T> offset;
  for (std::int64_t j = 0; j < block.count; ++j) {
    const auto k = static_cast<std::size_t>(j);
    const double inv_std = 1.0 / std::sqrt(s.variance[k] + epsilon);
    mean[k] = static_cast<T>(s.mean[k]);
    slope[k] = static_cast<T>(static_cast<double>(scale[block.first + j]) * inv_std);
    offset[k] = bias[block.first + j];
  }
  const T* const m = mean.data();
  const T* const a = slope.data();
  const T* const b = offset.data();
  if (activation.is_on) {
    for_each_element(view, block,
                     [&](auto i, auto j) { y[i] = activation.apply((x[i] - m[j]) * a[j] + b[j]); });
  } else {
    for_each_element(view, block, [&](auto i, auto j) { y[i] = (x[i] - m[j]) * a[j] + b[j]; });
  }
}

/// running * momentum + batch * (1 - momentum); an empty batch changes nothing.
template <class T>
void mix(const ChannelView& view, const Block& block, double momentum,
         const PerChannel<double>& batch, double factor, const T* running, T* result) {
  if (result == nullptr) return;
  for (std::int64_t j = 0; j < block.count; ++j) {
    const auto old = static_cast<double>(running[block.first + j]);
    const double fresh = at(batch, j) * factor;
    const double mixed = view.count() == 0 ? old : old * momentum + fresh * (1.0 - momentum);
    result[block.first + j] = static_cast<T>(mixed);
  }
}

bool is_one_type(const KernelRequest& request) {
  for (int i = 1; i < request.input_count(); ++i) {
    if (request.dtype(i) != request.dtype(0)) return false;
  }
  return true;
}

template <class T>
void infer_with(const ChannelView& view, double epsilon, const KernelArgs& args) {
  const FusedActivation none{{}};
  for_each_block(view, [&](const Block& block) {
    Statistics s;
    for (std::int64_t j = 0; j < block.count; ++j) {
      const auto k = static_cast<std::size_t>(j);
      s.mean[k] = static_cast<double>(args.input<T>(3)[block.first + j]);
      s.variance[k] = static_cast<double>(args.input<T>(4)[block.first + j]);
    }
    normalize(view, block, epsilon, s, none, args.input<T>(1), args.input<T>(2), args.input<T>(0),
              args.output<T>());
  });
}

/// `factor` turns the population variance into the one that enters the running variance; outputs
/// `running` and running + 1 take the running statistics, if there.
template <class T>
void train_with(const ChannelView& view, const BatchNormSettings& by,
                const FusedActivation& activation, double factor, int running, bool saves,
                const KernelArgs& args, bool has_mean, bool has_variance) {
  for_each_block(view, [&](const Block& block) {
    Statistics s;
    batch_statistics(view, block, args.input<T>(0), s);
    normalize(view, block, by.epsilon, s, activation, args.input<T>(1), args.input<T>(2),
              args.input<T>(0), args.output<T>());
    mix(view, block, by.momentum, s.mean, 1.0, args.input<T>(3),
        has_mean ? args.output<T>(running) : nullptr);
    mix(view, block, by.momentum, s.variance, factor, args.input<T>(4),
        has_variance ? args.output<T>(running + 1) : nullptr);
    for (std::int64_t j = 0; saves && j < block.count; ++j) {
      const auto k = static_cast<std::size_t>(j);
      args.output<T>(1)[block.first + j] = static_cast<T>(s.mean[k]);
      args.output<T>(2)[block.first + j] =
          static_cast<T>(1.0 / std::sqrt(s.variance[k] + by.epsilon));
    }
  });
}

Kernel make_batch_norm(KernelRequest& request) {
  Kernel kernel;
  if (!is_one_type(request)) return kernel;
  const ChannelView view(request);
  const BatchNormSettings by(request.attributes());
  const FusedActivation activation(request.attributes());
  const bool trains = request.attributes().get_int("training_mode", 0) != 0;
  const bool has_mean = request.has_output(1);
  const bool has_variance = request.has_output(2);
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    if (trains) {
      kernel = [=](const KernelArgs& args) {
        train_with<T>(view, by, activation, 1.0, 1, false, args, has_mean, has_variance);
      };
    } else {
      kernel = [=](const KernelArgs& args) { infer_with<T>(view, by.epsilon, args); };
    }
  });
  return kernel;
}

Kernel make_training(KernelRequest& request) {
  Kernel kernel;
  const ChannelView view(request);
  const BatchNormSettings by(request.attributes());
  const FusedActivation activation(request.attributes());
  const auto count = static_cast<double>(view.count());
  const double factor = count > 1 ? count / (count - 1) : 1.0;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      train_with<T>(view, by, activation, factor, 3, true, args, true, true);
    };
  });
  return kernel;
}

/// With h = (x - mean) * s: dbias = sum dy, dscale = sum dy * h, and
/// dx = scale * s * (dy - dbias / n - h * dscale / n). Ioffe and Szegedy 2015, section 3.
/// passed(i, j) stands for dy: see `differentiate`.
template <class T, class Passed>
void differentiate_passed(const ChannelView& view, const Block& block, const KernelArgs& args,
                          Passed&& passed) {
  const T* const x = args.input<T>(0);
  const T* const mean = args.input<T>(3) + block.first;
  PerChannel<double> sums;
  PerChannel<double> moments;
  sum_channels(
      view, block, sums, moments, [&](auto i, auto j) { return static_cast<double>(passed(i, j)); },
      [&](auto i, auto j) {
        return static_cast<double>(passed(i, j)) *
               (static_cast<double>(x[i]) - static_cast<double>(mean[j]));
      });
  const double share = view.count() == 0 ? 0.0 : 1.0 / static_cast<double>(view.count());
  PerChannel<T> means;
  PerChannel<T> slopes;
  PerChannel<T> curves;
  PerChannel<T> offsets;
  for (std::int64_t j = 0; j < block.count; ++j) {
    const auto k = static_cast<std::size_t>(j);
    const std::int64_t channel = block.first + j;
    const auto inv_std = static_cast<double>(args.input<T>(4)[channel]);
    const double slope = static_cast<double>(args.input<T>(2)[channel]) * inv_std;
    args.output<T>(1)[channel] = static_cast<T>(moments[k] * inv_std);
    args.output<T>(2)[channel] = static_cast<T>(sums[k]);
    means[k] = mean[j];
    slopes[k] = static_cast<T>(slope);
    curves[k] = static_cast<T>(-slope * inv_std * inv_std * moments[k] * share);
    offsets[k] = static_cast<T>(-slope * sums[k] * share);
  }
  T* const dx = args.output<T>();
  const T* const m = means.data();
  const T* const a = slopes.data();
  const T* const b = curves.data();
  const T* const c = offsets.data();
  for_each_element(view, block, [&](auto i, auto j) {
    dx[i] = passed(i, j) * a[j] + (x[i] - m[j]) * b[j] + c[j];
  });
}

/// Takes dy where a fused activation lets it pass: what was normalized is computed again. Which
/// activation there is is asked before the loops, which vectorise then.
template <class T>
void differentiate(const ChannelView& view, const FusedActivation& activation, const Block& block,
                   const KernelArgs& args) {
  const T* const x = args.input<T>(0);
  const T* const dy = args.input<T>(1);
  if (!activation.is_on) {
    return differentiate_passed<T>(view, block, args, [=](auto i, auto) { return dy[i]; });
  }
  PerChannel<T> slopes;
  for (std::int64_t j = 0; j < block.count; ++j) {
    at(slopes, j) = args.input<T>(2)[block.first + j] * args.input<T>(4)[block.first + j];
  }
  const auto normalized = [x, slope = slopes.data(), mean = args.input<T>(3) + block.first,
                           bias = args.input<T>(5) + block.first](auto i, auto j) {
    return (x[i] - mean[j]) * slope[j] + bias[j];
  };
  const T lower = static_cast<T>(activation.lower);
  const T upper = static_cast<T>(activation.upper);
  if (activation.is_strict) {
    differentiate_passed<T>(
        view, block, args, [=](auto i, auto j) { return normalized(i, j) > lower ? dy[i] : T(0); });
  } else {
    differentiate_passed<T>(view, block, args, [=](auto i, auto j) {
      const T t = normalized(i, j);
      const T above = t < lower ? T(0) : dy[i];
      return t > upper ? T(0) : above;
    });
  }
}

Kernel make_grad(KernelRequest& request) {
  Kernel kernel;
  const FusedActivation activation(request.attributes());
  const ChannelView view(request);
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [view, activation](const KernelArgs& args) {
      for_each_block(view,
                     [&](const Block& block) { differentiate<T>(view, activation, block, args); });
    };
  });
  return kernel;
}

}  // namespace

void register_batch_norm_cpu(KernelRegistry& registry) {
  register_channels_last_batch_norm(registry);
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add(
        {.op = op, .domain = domain, .name = "plain", .make = make, .knows_layouts = true});
  };
  add("BatchNormalization", "", make_batch_norm);
  add("BatchNormTraining", kInternalDomain, make_training);
  add("BatchNormGrad", kInternalDomain, make_grad);
}

}  // namespace graft
