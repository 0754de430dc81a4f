#include "core/base/machine.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/norm_row.h"
#include "core/ops/norm/norm_groups.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Calls body(sample, group) for each, over all threads: one thread normalizes a group while it is
/// in its cache.
template <class Body>
void for_each_group(const NormGroups& by, Body&& body) {
  if (by.samples == 0) return;
  parallel_for(by.count(), kRowwiseGrain / by.size() + 1,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) body(i / by.groups, i % by.groups);
               });
}

template <bool kHasGroups>
Kernel make_forward(KernelRequest& request) {
  const NormGroups by(request, 0, kHasGroups);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [by](const KernelArgs& args) {
      for_each_group(by, [&](std::int64_t sample, std::int64_t group) {
        const std::int64_t start = (sample * by.groups + group) * by.size();
        const T* const x = args.input<T>(0) + start;
        T* const y = args.output<T>() + start;
        const Moments<T> moments(x, by.size(), by.epsilon);
        const T middle = moments.center.middle;
        const T rest = moments.center.rest;
        for (std::int64_t c = 0; c < by.channels; ++c) {
          const std::int64_t channel = group * by.channels + c;
          const T slope =
              static_cast<T>(static_cast<double>(args.input<T>(1)[channel]) * moments.inv_std);
          const T bias = args.input<T>(2)[channel];
#pragma omp simd
          for (std::int64_t i = c * by.inner; i < (c + 1) * by.inner; ++i) {
            y[i] = (x[i] - middle - rest) * slope + bias;
          }
        }
      });
    };
  });
  return kernel;
}

/// For each channel of each sample, the sums of dy and dy * h, h = (x - mean) * s.
struct ChannelSums {
  double flat;
  double moment;
};

/// With g = dy * scale: dx = s (g - mean(g) - h mean(g h)), means over the group.
template <class T>
void differentiate(const NormGroups& by, const T* dy, const T* x, const T* scale, ChannelSums* sums,
                   T* dx) {
  const Moments<T> moments(x, by.size(), by.epsilon);
  const T middle = moments.center.middle;
  const T rest = moments.center.rest;
  double flat = 0;
  double moment = 0;
  for (std::int64_t c = 0; c < by.channels; ++c) {
    const T* const d = dy + c * by.inner;
    const T* const from = x + c * by.inner;
    const TwoSums<T> channel(by.inner, [=]<class V>(std::int64_t i, V& to_flat, V& to_moment) {
      const V gradient = load_as<V>(d + i);
      to_flat += gradient;
      to_moment += gradient * (load_as<V>(from + i) - middle - rest);
    });
    sums[c] = {channel.a, channel.b * moments.inv_std};
    flat += sums[c].flat * static_cast<double>(scale[c]);
    moment += sums[c].moment * static_cast<double>(scale[c]);
  }
  const double share = moments.inv_std / static_cast<double>(by.size());
  const T offset = static_cast<T>(-flat * share);
  const T curve = static_cast<T>(-moment * share * moments.inv_std);
  for (std::int64_t c = 0; c < by.channels; ++c) {
    const T slope = static_cast<T>(static_cast<double>(scale[c]) * moments.inv_std);
#pragma omp simd
    for (std::int64_t i = c * by.inner; i < (c + 1) * by.inner; ++i) {
      dx[i] = dy[i] * slope + (x[i] - middle - rest) * curve + offset;
    }
  }
}

/// Adds the samples' sums, in their order.
template <class T>
void add_samples(const NormGroups& by, const ChannelSums* sums, T* dscale, T* dbias) {
  for (std::int64_t channel = 0; channel < by.all_channels; ++channel) {
    ChannelSums total{0, 0};
    for (std::int64_t sample = 0; sample < by.samples; ++sample) {
      const ChannelSums& one = sums[sample * by.all_channels + channel];
      total.flat += one.flat;
      total.moment += one.moment;
    }
    dscale[channel] = static_cast<T>(total.moment);
    dbias[channel] = static_cast<T>(total.flat);
  }
}

Kernel make_backward(KernelRequest& request) {
  const NormGroups by(request, 1, true);
  request.need_workspace(static_cast<std::size_t>(by.samples * by.all_channels) *
                         sizeof(ChannelSums));
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [by](const KernelArgs& args) {
      auto* const sums = static_cast<ChannelSums*>(args.workspace);
      for_each_group(by, [&](std::int64_t sample, std::int64_t group) {
        const std::int64_t block = sample * by.groups + group;
        const std::int64_t start = block * by.size();
        differentiate(by, args.input<T>(0) + start, args.input<T>(1) + start,
                      args.input<T>(2) + group * by.channels, sums + block * by.channels,
                      args.output<T>() + start);
      });
      add_samples(by, sums, args.output<T>(1), args.output<T>(2));
    };
  });
  return kernel;
}

}  // namespace

void register_group_norm_cpu(KernelRegistry& registry) {
  registry.add({.op = "GroupNormalization", .name = "plain", .make = make_forward<true>});
  registry.add({.op = "InstanceNormalization", .name = "plain", .make = make_forward<false>});
  registry.add(
      {.op = "GroupNormGrad", .domain = kInternalDomain, .name = "plain", .make = make_backward});
}

}  // namespace graft
