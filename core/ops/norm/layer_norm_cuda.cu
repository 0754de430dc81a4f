#include <algorithm>
#include <optional>

#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/moments_cuda.h"
#include "core/ops/kernels/norm_row.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/norm/layer_norm_rows.h"

namespace graft {
namespace {

/// A float output, in the type it has.
struct Numbers {
  void* data;
  bool is_double;
  __device__ void set(std::int64_t i, double x) const {
    if (data == nullptr) return;
    if (is_double) {
      static_cast<double*>(data)[i] = x;
    } else {
      static_cast<float*>(data)[i] = static_cast<float>(x);
    }
  }
};

template <class T>
struct Normalize {
  const T* x;
  const T* scale;
  const T* bias;  ///< may be null
  T* y;
  Numbers mean;
  Numbers inv_std;
  std::int64_t length;
  double epsilon;
  bool is_centered;

  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = row * length;
    const DeviceMoments moments = moments_of(team, length, epsilon, is_centered,
                                             [&](std::int64_t i) { return x[first + i]; });
    const T slope = static_cast<T>(moments.inv_std);
    for (std::int64_t i = team.rank; i < length; i += Team::size) {
      const T scaled = moments.centered(x[first + i]) * slope * scale[i];
      y[first + i] = bias == nullptr ? scaled : scaled + bias[i];
    }
    if (team.rank > 0) return;
    mean.set(row, moments.mean);
    inv_std.set(row, moments.inv_std);
  }
};

/// The operands of a gradient, and its workspace: moments of each row, then sums of each piece of
/// the rows.
template <class T>
struct NormGrad {
  const T* dy;
  const T* x;
  const T* scale;
  T* dx;
  T* dscale;
  T* dbias;  ///< null without a mean
  DeviceMoments* moments;
  double* sums;  ///< [piece][scale, bias][length]
  std::int64_t rows;
  std::int64_t length;
  std::int64_t pieces;
  double epsilon;
  bool is_centered;
};

template <class T>
struct FindMoments {
  NormGrad<T> g;
  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const DeviceMoments found = moments_of(team, g.length, g.epsilon, g.is_centered,
                                           [&](std::int64_t i) { return g.x[row * g.length + i]; });
    if (team.rank == 0) g.moments[row] = found;
  }
};

/// What the rows of a piece give to the parameters, by element.
template <class T>
struct SumPiece {
  NormGrad<T> g;
  __device__ void operator()(std::int64_t item) const {
    const std::int64_t piece = item / g.length;
    const std::int64_t i = item % g.length;
    double for_scale = 0.0;
    double for_bias = 0.0;
    const std::int64_t last = g.rows * (piece + 1) / g.pieces;
    for (std::int64_t row = g.rows * piece / g.pieces; row < last; ++row) {
      const std::int64_t at = row * g.length + i;
      const DeviceMoments moments = g.moments[row];
      const T slope = static_cast<T>(moments.inv_std);
      for_scale += static_cast<double>(g.dy[at] * moments.centered(g.x[at]) * slope);
      for_bias += static_cast<double>(g.dy[at]);
    }
    g.sums[2 * piece * g.length + i] = for_scale;
    g.sums[(2 * piece + 1) * g.length + i] = for_bias;
  }
};

template <class T>
struct JoinPieces {
  NormGrad<T> g;
  __device__ void operator()(std::int64_t i) const {
    double for_scale = 0.0;
    double for_bias = 0.0;
    for (std::int64_t piece = 0; piece < g.pieces; ++piece) {
      for_scale += g.sums[2 * piece * g.length + i];
      for_bias += g.sums[(2 * piece + 1) * g.length + i];
    }
    g.dscale[i] = static_cast<T>(for_scale);
    if (g.dbias != nullptr) g.dbias[i] = static_cast<T>(for_bias);
  }
};

/// With h = (x - mean) * s, g = dy * scale: dx = s (g - mean(g) - h mean(g h)), mean(g) only where
/// a mean was subtracted. dx may be dy or x.
template <class T>
struct Differentiate {
  NormGrad<T> g;
  template <class Team>
  __device__ void operator()(std::int64_t row, const Team& team) const {
    const std::int64_t first = row * g.length;
    const DeviceMoments moments = g.moments[row];
    const auto gradient = [&](std::int64_t i) { return g.dy[first + i] * g.scale[i]; };
    const double flat =
        team_sum(team, g.length, [&](std::int64_t i) { return static_cast<double>(gradient(i)); });
    const double moment = team_sum(team, g.length, [&](std::int64_t i) {
      return static_cast<double>(gradient(i) * moments.centered(g.x[first + i]));
    });
    const double share = moments.inv_std / static_cast<double>(g.length);
    const T slope = static_cast<T>(moments.inv_std);
    const T offset = static_cast<T>(g.is_centered ? -flat * share : 0.0);
    const T curve = static_cast<T>(-moments.inv_std * moments.inv_std * moment * share);
    for (std::int64_t i = team.rank; i < g.length; i += Team::size) {
      const T centered = moments.centered(g.x[first + i]);
      g.dx[first + i] = gradient(i) * slope + centered * curve + offset;
    }
  }
};

/// nullopt: the type is one that `Numbers` cannot have.
std::optional<bool> is_double_output(const KernelRequest& request, int output) {
  if (output >= request.output_count() || !request.has_output(output)) return false;
  const DType dtype = request.output(output).dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return std::nullopt;
  return dtype == DType::f64;
}

/// Scale and bias have an element for each that is normalized together.
template <bool is_centered>
Kernel make_forward(KernelRequest& request) {
  const NormRows rows(request, 0);
  const bool has_bias = request.input_count() > 2 && request.has_input(2);
  const auto fits = [&](int input) {
    return is_row_parameter(request.shape(), rows.axis, request.shape(input));
  };
  const auto mean_is_double = is_double_output(request, 1);
  const auto inv_std_is_double = is_double_output(request, 2);
  if (!fits(1) || (has_bias && !fits(2)) || !mean_is_double || !inv_std_is_double) return {};
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const Normalize<T> normalize{args.input<T>(0),
                                 args.input<T>(1),
                                 args.input<T>(2),
                                 args.output<T>(),
                                 {args.output<void>(1), *mean_is_double},
                                 {args.output<void>(2), *inv_std_is_double},
                                 rows.length,
                                 rows.epsilon,
                                 is_centered};
    start_rows(normalize, rows.count, rows.length, true, stream);
  });
}

template <bool is_centered>
Kernel make_backward(KernelRequest& request) {
  const NormRows rows(request, 1);
  const std::int64_t pieces = std::clamp<std::int64_t>(rows.count / 16, 1, 64);
  WorkspaceLayout layout;
  const std::size_t moments = layout.reserve<DeviceMoments>(rows.count);
  const std::size_t sums = layout.reserve<double>(checked_multiply(2 * pieces, rows.length));
  request.need_workspace(layout.bytes());
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const NormGrad<T> g{args.input<T>(0),
                        args.input<T>(1),
                        args.input<T>(2),
                        args.output<T>(0),
                        args.output<T>(1),
                        is_centered ? args.output<T>(2) : nullptr,
                        workspace_at<DeviceMoments>(args, moments),
                        workspace_at<double>(args, sums),
                        rows.count,
                        rows.length,
                        pieces,
                        rows.epsilon,
                        is_centered};
    start_rows(FindMoments<T>{g}, g.rows, g.length, true, stream);
    // The parameters first: dx may lie where dy or x does.
    start_items(SumPiece<T>{g}, g.pieces * g.length, stream);
    start_items(JoinPieces<T>{g}, g.length, stream);
    start_rows(Differentiate<T>{g}, g.rows, g.length, true, stream);
  });
}

}  // namespace

void register_layer_norm_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "rows",
                   {{"LayerNormalization", make_forward<true>},
                    {"RMSNormalization", make_forward<false>},
                    {"LayerNormGrad", make_backward<true>, kInternalDomain},
                    {"RmsNormGrad", make_backward<false>, kInternalDomain}});
}

}  // namespace graft
