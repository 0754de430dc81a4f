// A row is a channel: a team sums it up, and passes over it again.
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/moments_cuda.h"
#include "core/ops/norm/batch_norm.h"

namespace graft {
namespace {

/// Where the elements of a channel lie.
struct Channel {
  std::int64_t channels;
  std::int64_t inner;
  std::int64_t channel;
  __device__ std::int64_t at(std::int64_t i) const {
    return (i / inner * channels + channel) * inner + i % inner;
  }
};

template <class T>
struct Infer {
  const T* x;
  const T* scale;
  const T* bias;
  const T* mean;
  const T* variance;
  T* y;
  std::int64_t channels;
  std::int64_t inner;
  double epsilon;

  __device__ void operator()(std::int64_t i) const {
    const std::int64_t c = i / inner % channels;
    const double inv_std = 1.0 / device_math::sqrt(static_cast<double>(variance[c]) + epsilon);
    const T slope = static_cast<T>(static_cast<double>(scale[c]) * inv_std);
    y[i] = (x[i] - mean[c]) * slope + bias[c];
  }
};

template <class T>
struct Train {
  const T* x;
  const T* scale;
  const T* bias;
  const T* running_mean;
  const T* running_variance;
  T* y;
  T* saved_mean;  ///< may be null, as may those below
  T* saved_inv_std;
  T* new_mean;
  T* new_variance;
  ChannelView view;
  BatchNormSettings by;
  FusedActivation activation;
  /// Of the population variance, for the running one.
  double factor;

  template <class Team>
  __device__ void operator()(std::int64_t c, const Team& team) const {
    const Channel channel{view.channels, view.inner, c};
    const std::int64_t count = view.outer * view.inner;
    const double share = count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
    const double mean = share * team_sum(team, count, [&](std::int64_t i) {
                          return static_cast<double>(x[channel.at(i)]);
                        });
    const double variance = share * team_sum(team, count, [&](std::int64_t i) {
                              const double difference =
                                  static_cast<double>(x[channel.at(i)]) - mean;
                              return difference * difference;
                            });
    const double inv_std = 1.0 / device_math::sqrt(variance + by.epsilon);
    const T middle = static_cast<T>(mean);
    const T slope = static_cast<T>(static_cast<double>(scale[c]) * inv_std);
    for (std::int64_t i = team.rank; i < count; i += Team::size) {
      const std::int64_t at = channel.at(i);
      const T normalized = (x[at] - middle) * slope + bias[c];
      y[at] = activation.is_on ? activation.apply(normalized) : normalized;
    }
    if (team.rank > 0) return;
    if (saved_mean != nullptr) saved_mean[c] = middle;
    if (saved_inv_std != nullptr) saved_inv_std[c] = static_cast<T>(inv_std);
    mix(running_mean, mean, c, new_mean);
    mix(running_variance, variance * factor, c, new_variance);
  }

 private:
  /// running * momentum + batch * (1 - momentum); an empty batch changes nothing.
  __device__ void mix(const T* running, double batch, std::int64_t c, T* result) const {
    if (result == nullptr) return;
    const auto old = static_cast<double>(running[c]);
    const bool is_empty = view.outer * view.inner == 0;
    result[c] = static_cast<T>(is_empty ? old : old * by.momentum + batch * (1.0 - by.momentum));
  }
};

/// With h = (x - mean) * s: dbias = sum dy, dscale = sum dy * h, and
/// dx = scale * s * (dy - dbias / n - h * dscale / n). Ioffe and Szegedy 2015, section 3.
template <class T>
struct Differentiate {
  const T* x;
  const T* dy;
  const T* scale;
  const T* mean;
  const T* inv_std;
  const T* bias;  ///< null without an activation
  T* dx;          ///< may be x or dy
  T* dscale;
  T* dbias;
  ChannelView view;
  FusedActivation activation;

  template <class Team>
  __device__ void operator()(std::int64_t c, const Team& team) const {
    const Channel channel{view.channels, view.inner, c};
    const std::int64_t count = view.outer * view.inner;
    const T middle = mean[c];
    const double deviation = static_cast<double>(inv_std[c]);
    const double slope = static_cast<double>(scale[c]) * deviation;
    const T forward_slope = scale[c] * inv_std[c];
    // dy where the activation lets it pass: what was normalized is computed again.
    const auto passed = [&](std::int64_t at) {
      if (!activation.is_on) return dy[at];
      return activation.passes((x[at] - middle) * forward_slope + bias[c]) ? dy[at] : T{0};
    };
    const double sum = team_sum(
        team, count, [&](std::int64_t i) { return static_cast<double>(passed(channel.at(i))); });
    const double moment = team_sum(team, count, [&](std::int64_t i) {
      const std::int64_t at = channel.at(i);
      return static_cast<double>(passed(at)) *
             (static_cast<double>(x[at]) - static_cast<double>(middle));
    });
    const double share = count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
    const T curve = static_cast<T>(-slope * deviation * deviation * moment * share);
    const T offset = static_cast<T>(-slope * sum * share);
    for (std::int64_t i = team.rank; i < count; i += Team::size) {
      const std::int64_t at = channel.at(i);
      dx[at] = passed(at) * static_cast<T>(slope) + (x[at] - middle) * curve + offset;
    }
    if (team.rank > 0) return;
    dscale[c] = static_cast<T>(moment * deviation);
    dbias[c] = static_cast<T>(sum);
  }
};

bool is_one_type(const KernelRequest& request) {
  for (int i = 1; i < request.input_count(); ++i) {
    if (request.has_input(i) && request.dtype(i) != request.dtype(0)) return false;
  }
  return true;
}

/// Long columns of features keep a team each busy; short ones are read side by side.
template <class Body>
void start_channels(const Body& body, const ChannelView& view, cudaStream_t stream) {
  constexpr std::int64_t kLongColumn = 1024;
  start_rows(body, view.channels, view.count(), view.inner > 1 || view.count() > kLongColumn,
             stream);
}

Kernel inference(const KernelRequest& request) {
  const ChannelView view(request);
  const BatchNormSettings by(request.attributes());
  const std::int64_t size = request.shape().size();
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const Infer<T> infer{args.input<T>(0), args.input<T>(1), args.input<T>(2),
                         args.input<T>(3), args.input<T>(4), args.output<T>(),
                         view.channels,    view.inner,       by.epsilon};
    start_items(infer, size, stream);
  });
}

/// `saved`, `running`: the first output of the two that hold them; none where negative.
Kernel training(const KernelRequest& request, int saved, int running, double factor) {
  const ChannelView view(request);
  const BatchNormSettings by(request.attributes());
  const FusedActivation activation(request.attributes());
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const auto at = [&](int first, int which) {
      return first < 0 ? nullptr : args.output<T>(first + which);
    };
    const Train<T> train{args.input<T>(0),
                         args.input<T>(1),
                         args.input<T>(2),
                         args.input<T>(3),
                         args.input<T>(4),
                         args.output<T>(),
                         at(saved, 0),
                         at(saved, 1),
                         at(running, 0),
                         at(running, 1),
                         view,
                         by,
                         activation,
                         factor};
    start_channels(train, view, stream);
  });
}

Kernel make_batch_norm(KernelRequest& request) {
  if (!is_one_type(request)) return {};
  const bool trains = request.attributes().get_int("training_mode", 0) != 0;
  return trains ? training(request, -1, 1, 1.0) : inference(request);
}

Kernel make_training(KernelRequest& request) {
  const auto count = static_cast<double>(ChannelView(request).count());
  return training(request, 1, 3, count > 1 ? count / (count - 1) : 1.0);
}

Kernel make_grad(KernelRequest& request) {
  const ChannelView view(request);
  const FusedActivation activation(request.attributes());
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const Differentiate<T> differentiate{
        args.input<T>(0), args.input<T>(1),  args.input<T>(2),  args.input<T>(3),  args.input<T>(4),
        args.input<T>(5), args.output<T>(0), args.output<T>(1), args.output<T>(2), view,
        activation};
    start_channels(differentiate, view, stream);
  });
}

}  // namespace

void register_batch_norm_cuda(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add({.op = op,
                  .domain = domain,
                  .device = DeviceKind::cuda,
                  .name = "rows",
                  .make = make,
                  .knows_layouts = true});
  };
  add("BatchNormalization", "", make_batch_norm);
  add("BatchNormTraining", kInternalDomain, make_training);
  add("BatchNormGrad", kInternalDomain, make_grad);
}

}  // namespace graft
