#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/moments_cuda.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/norm/norm_groups.h"

namespace graft {
namespace {

template <class T>
struct Normalize {
  const T* x;
  const T* scale;
  const T* bias;
  T* y;
  NormGroups by;

  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t size = by.channels * by.inner;
    const std::int64_t first = row * size;
    const DeviceMoments moments =
        moments_of(team, size, by.epsilon, true, [&](std::int64_t i) { return x[first + i]; });
    const std::int64_t first_channel = row % by.groups * by.channels;
    for (std::int64_t i = team.rank; i < size; i += Team::size) {
      const std::int64_t channel = first_channel + i / by.inner;
      const T slope = static_cast<T>(static_cast<double>(scale[channel]) * moments.inv_std);
      y[first + i] = moments.centered(x[first + i]) * slope + bias[channel];
    }
  }
};

/// For each channel of each sample, the sums of dy and dy * h, h = (x - mean) * s.
struct ChannelSums {
  double flat;
  double moment;
};

template <class T>
struct NormGrad {
  const T* dy;
  const T* x;
  const T* scale;
  T* dx;
  T* dscale;
  T* dbias;
  DeviceMoments* moments;  ///< [sample, group]
  ChannelSums* sums;       ///< [sample, channel]
  NormGroups by;
};

template <class T>
struct FindMoments {
  NormGrad<T> g;
  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t size = g.by.channels * g.by.inner;
    const DeviceMoments found = moments_of(team, size, g.by.epsilon, true,
                                           [&](std::int64_t i) { return g.x[row * size + i]; });
    if (team.rank == 0) g.moments[row] = found;
  }
};

/// A row is a channel of a sample.
template <class T>
struct SumChannel {
  NormGrad<T> g;
  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = row * g.by.inner;
    const DeviceMoments moments = g.moments[row / g.by.channels];
    const double flat = team_sum(
        team, g.by.inner, [&](std::int64_t i) { return static_cast<double>(g.dy[first + i]); });
    const double moment = team_sum(team, g.by.inner, [&](std::int64_t i) {
      return static_cast<double>(g.dy[first + i] * moments.centered(g.x[first + i]));
    });
    if (team.rank == 0) g.sums[row] = {flat, moment * moments.inv_std};
  }
};

/// Adds the samples' sums, in their order.
template <class T>
struct JoinSamples {
  NormGrad<T> g;
  __device__ void operator()(std::int64_t channel) const {
    double flat = 0.0;
    double moment = 0.0;
    for (std::int64_t sample = 0; sample < g.by.samples; ++sample) {
      flat += g.sums[sample * g.by.all_channels + channel].flat;
      moment += g.sums[sample * g.by.all_channels + channel].moment;
    }
    g.dscale[channel] = static_cast<T>(moment);
    g.dbias[channel] = static_cast<T>(flat);
  }
};

/// With g = dy * scale: dx = s (g - mean(g) - h mean(g h)), means over the group. dx may be dy or
/// x.
template <class T>
struct Differentiate {
  NormGrad<T> g;
  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const NormGroups& by = g.by;
    const DeviceMoments moments = g.moments[row];
    const T* const scale = g.scale + row % by.groups * by.channels;
    const ChannelSums* const sums = g.sums + row * by.channels;
    const double flat = team_sum(team, by.channels, [&](std::int64_t c) {
      return sums[c].flat * static_cast<double>(scale[c]);
    });
    const double moment = team_sum(team, by.channels, [&](std::int64_t c) {
      return sums[c].moment * static_cast<double>(scale[c]);
    });
    const std::int64_t size = by.channels * by.inner;
    const double share = moments.inv_std / static_cast<double>(size);
    const T offset = static_cast<T>(-flat * share);
    const T curve = static_cast<T>(-moment * share * moments.inv_std);
    for (std::int64_t i = team.rank; i < size; i += Team::size) {
      const std::int64_t at = row * size + i;
      const auto gain = static_cast<double>(scale[i / by.inner]);
      const T slope = static_cast<T>(gain * moments.inv_std);
      g.dx[at] = g.dy[at] * slope + moments.centered(g.x[at]) * curve + offset;
    }
  }
};

template <bool has_groups>
Kernel make_forward(KernelRequest& request) {
  const NormGroups by(request, 0, has_groups);
  return cuda_float_kernel(request, [by]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const Normalize<T> normalize{args.input<T>(0), args.input<T>(1), args.input<T>(2),
                                 args.output<T>(), by};
    start_rows(normalize, by.count(), by.size(), true, stream);
  });
}

Kernel make_backward(KernelRequest& request) {
  const NormGroups by(request, 1, true);
  const std::int64_t channels = by.samples * by.all_channels;
  WorkspaceLayout layout;
  const std::size_t sums = layout.reserve<ChannelSums>(channels);
  const std::size_t moments = layout.reserve<DeviceMoments>(by.count());
  request.need_workspace(layout.bytes());
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const NormGrad<T> g{args.input<T>(0),
                        args.input<T>(1),
                        args.input<T>(2),
                        args.output<T>(0),
                        args.output<T>(1),
                        args.output<T>(2),
                        workspace_at<DeviceMoments>(args, moments),
                        workspace_at<ChannelSums>(args, sums),
                        by};
    start_rows(FindMoments<T>{g}, by.count(), by.size(), true, stream);
    start_rows(SumChannel<T>{g}, channels, by.inner, true, stream);
    start_items(JoinSamples<T>{g}, by.all_channels, stream);
    start_rows(Differentiate<T>{g}, by.count(), by.size(), true, stream);
  });
}

}  // namespace

void register_group_norm_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "rows",
                   {{"GroupNormalization", make_forward<true>},
                    {"InstanceNormalization", make_forward<false>},
                    {"GroupNormGrad", make_backward, kInternalDomain}});
}

}  // namespace graft
