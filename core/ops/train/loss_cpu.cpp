#include <Eigen/Core>
#include <array>
#include <cmath>
#include <limits>

#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/nan_max.h"
#include "core/ops/kernels/row_math.h"
#include "core/ops/registry.h"
#include "core/ops/train/loss_setup.h"

namespace graft {
namespace {

/// Labels and weights of one call.
template <class T>
class Targets {
 public:
  Targets(const LossSetup& setup, const KernelArgs& args)
      : setup_(setup),
        labels_(args.inputs[setup.first_input + 1]),
        weights_(setup.has_weights ? args.input<T>(setup.first_input + 2) : nullptr) {
    const std::int64_t classes = setup.loop.axis;
    weight_sum_ = weights_ == nullptr ? static_cast<double>(classes)
                                      : reduce_row<reducing::Sum<T>>(weights_, classes, T{0});
  }

  std::int64_t label(std::int64_t position) const {
    return setup_.wide_labels ? static_cast<const std::int64_t*>(labels_)[position]
                              : static_cast<const std::int32_t*>(labels_)[position];
  }
  bool is_ignored(std::int64_t label) const {
    return setup_.has_ignored && label == setup_.ignored;
  }
  bool is_valid(std::int64_t label) const { return label >= 0 && label < setup_.loop.axis; }
  T class_weight(std::int64_t index) const { return weights_ == nullptr ? T{1} : weights_[index]; }
  /// 0 when ignored, NaN when out of range.
  double weight(std::int64_t label) const {
    if (is_ignored(label)) return 0.0;
    return is_valid(label) ? static_cast<double>(class_weight(label))
                           : std::numeric_limits<double>::quiet_NaN();
  }
  /// Sum of the class weights.
  double weight_sum() const { return weight_sum_; }
  /// What a mean divides by.
  double total_weight() const {
    double total = 0;
    for (std::int64_t i = 0; i < setup_.positions; ++i) total += weight(label(i));
    return total;
  }

 private:
  const LossSetup& setup_;
  const void* labels_;
  const T* weights_;
  double weight_sum_;
};

template <class T>
using TileValues = std::array<T, AxisLoop::kTile>;

/// Largest score and log(sum(exp(score - largest))) of each position of a tile.
template <class T>
void normalize_tile(const AxisLoop& loop, const T* x, std::int64_t width, T* largest, T* log_sum) {
  if (loop.inner == 1) {
    *largest = max_row(x, loop.axis);
    *log_sum = static_cast<T>(std::log(sum_exp_row(x, loop.axis, *largest)));
    return;
  }
  using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
  using ConstRow = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
  Row most(largest, width);
  most = ConstRow(x, width);
  for (std::int64_t c = 1; c < loop.axis; ++c) {
    most = nan_max(most, ConstRow(x + c * loop.inner, width)).eval();
  }
  TileValues<double> sums{};
  Eigen::Map<Eigen::Array<double, Eigen::Dynamic, 1>> sum(sums.data(), width);
  for (std::int64_t c = 0; c < loop.axis; ++c) {
    sum += (ConstRow(x + c * loop.inner, width) - most).exp().template cast<double>();
  }
  Row(log_sum, width) = sum.log().template cast<T>();
}

template <class T>
void write_log_prob(const AxisLoop& loop, const T* x, std::int64_t width, const T* largest,
                    const T* log_sum, T* y) {
  for (std::int64_t c = 0; c < loop.axis; ++c) {
    if (loop.inner == 1) {
      y[c] = (x[c] - *largest) - *log_sum;
      continue;
    }
    for (std::int64_t j = 0; j < width; ++j) {
      y[c * loop.inner + j] = (x[c * loop.inner + j] - largest[j]) - log_sum[j];
    }
  }
}

/// Loss of one position whose scores are x[c * inner]; their log-probabilities are x - shift.
template <class T>
double position_loss(const LossSetup& setup, const Targets<T>& targets, std::int64_t label,
                     const T* x, double shift) {
  if (targets.is_ignored(label)) return 0.0;
  if (!targets.is_valid(label)) return std::numeric_limits<double>::quiet_NaN();
  const std::int64_t inner = setup.loop.inner;
  const double hard = -targets.weight(label) * (static_cast<double>(x[label * inner]) - shift);
  if (setup.smoothing == 0.0) return hard;
  double spread = shift * targets.weight_sum();
  for (std::int64_t c = 0; c < setup.loop.axis; ++c) {
    spread -= static_cast<double>(targets.class_weight(c)) * static_cast<double>(x[c * inner]);
  }
  return (1.0 - setup.smoothing) * hard +
         setup.smoothing / static_cast<double>(setup.loop.axis) * spread;
}

/// The workspace holds one loss a position until they are summed in order.
template <class T, bool kScores>
void run_loss(const LossSetup& setup, const KernelArgs& args) {
  const Targets<T> targets(setup, args);
  auto* const losses = static_cast<double*>(args.workspace);
  setup.loop.for_each_tile([&](std::int64_t start, std::int64_t width) {
    const T* const x = args.input<T>(0) + start;
    TileValues<T> largest;
    TileValues<T> log_sum;
    if constexpr (kScores) {
      normalize_tile(setup.loop, x, width, largest.data(), log_sum.data());
      if (setup.has_log_prob) {
        write_log_prob(setup.loop, x, width, largest.data(), log_sum.data(),
                       args.output<T>(1) + start);
      }
    }
    const std::int64_t first = setup.loop.reduced_offset(start);
    for (std::int64_t j = 0; j < width; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const double shift =
          kScores ? static_cast<double>(largest[at]) + static_cast<double>(log_sum[at]) : 0.0;
      losses[first + j] = position_loss(setup, targets, targets.label(first + j), x + j, shift);
    }
  });
  T* const y = args.output<T>();
  if (setup.reduction == LossReduction::none) {
    for (std::int64_t i = 0; i < setup.positions; ++i) y[i] = static_cast<T>(losses[i]);
    return;
  }
  const double total = reduce_row<reducing::Sum<double>>(losses, setup.positions, 0.0);
  *y = static_cast<T>(setup.reduction == LossReduction::sum ? total
                                                            : total / targets.total_weight());
}

/// y = softmax(x) * scale for the positions of a tile; y may be x.
template <class T>
void softmax_tile(const AxisLoop& loop, const T* x, std::int64_t width, const T* scale, T* y) {
  using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
  using ConstRow = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
  if (loop.inner == 1) {
    exp_row(x, loop.axis, max_row(x, loop.axis), y);
    const auto sum = static_cast<T>(reduce_row<reducing::Sum<T>>(y, loop.axis, T{0}));
    Row(y, loop.axis) *= *scale / sum;
    return;
  }
  TileValues<T> largest;
  TileValues<T> log_sum;
  normalize_tile(loop, x, width, largest.data(), log_sum.data());
  for (std::int64_t c = 0; c < loop.axis; ++c) {
    const std::int64_t at = c * loop.inner;
    const auto centred = ConstRow(x + at, width) - ConstRow(largest.data(), width);
    Row(y + at, width) = (centred - ConstRow(log_sum.data(), width)).exp() * ConstRow(scale, width);
  }
}

/// What the gradients of one tile of positions are made of; g is the gradient of a position's loss.
template <class T>
struct Coefficients {
  TileValues<T> hard{};   ///< g (1 - smoothing) weight: taken from the label's class
  TileValues<T> soft{};   ///< g smoothing / C: taken, weighted, from every class
  TileValues<T> scale{};  ///< g times the sum of the target: factor of the softmax
};

/// All zero for an ignored label, NaN for one out of range.
template <class T>
Coefficients<T> coefficients(const LossSetup& setup, const Targets<T>& targets, const T* dloss,
                             double divisor, std::int64_t first, std::int64_t width) {
  Coefficients<T> result;
  const double spread = setup.smoothing / static_cast<double>(setup.loop.axis);
  for (std::int64_t j = 0; j < width; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const std::int64_t label = targets.label(first + j);
    if (targets.is_ignored(label)) continue;
    const bool is_scalar = setup.reduction != LossReduction::none;
    const double g = static_cast<double>(dloss[is_scalar ? 0 : first + j]) / divisor;
    const double target = (1.0 - setup.smoothing) * targets.weight(label);
    result.hard[at] = static_cast<T>(g * target);
    result.soft[at] = static_cast<T>(g * spread);
    result.scale[at] = static_cast<T>(g * (target + spread * targets.weight_sum()));
  }
  return result;
}

/// dx = g (Q softmax(x) - q), where q is the weighted (smoothed) target and Q its sum. Where
/// log-probabilities are given instead of scores, dx = -g q.
template <class T, bool kScores>
void run_loss_grad(const LossSetup& setup, const KernelArgs& args) {
  const Targets<T> targets(setup, args);
  const AxisLoop& loop = setup.loop;
  const double divisor = setup.reduction == LossReduction::mean ? targets.total_weight() : 1.0;
  loop.for_each_tile([&](std::int64_t start, std::int64_t width) {
    T* const dx = args.output<T>() + start;
    const std::int64_t first = loop.reduced_offset(start);
    const Coefficients<T> c = coefficients(setup, targets, args.input<T>(0), divisor, first, width);
    if constexpr (kScores) softmax_tile(loop, args.input<T>(1) + start, width, c.scale.data(), dx);
    for (std::int64_t j = 0; j < width; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const std::int64_t label = targets.label(first + j);
      for (std::int64_t i = 0; !kScores && i < loop.axis; ++i) {
        dx[i * loop.inner + j] = c.scale[at] * T{0};  // NaN stays NaN
      }
      if (targets.is_valid(label)) dx[label * loop.inner + j] -= c.hard[at];
      for (std::int64_t i = 0; setup.smoothing > 0 && i < loop.axis; ++i) {
        dx[i * loop.inner + j] -= c.soft[at] * targets.class_weight(i);
      }
    }
  });
}

template <bool kScores>
Kernel make_loss(KernelRequest& request) {
  const LossSetup setup(request, 0);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    request.need_workspace(static_cast<std::size_t>(setup.positions) * sizeof(double));
    kernel = [setup](const KernelArgs& args) { run_loss<T, kScores>(setup, args); };
  });
  return kernel;
}

template <bool kScores>
Kernel make_loss_grad(KernelRequest& request) {
  const LossSetup setup(request, 1);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [setup](const KernelArgs& args) { run_loss_grad<T, kScores>(setup, args); };
  });
  return kernel;
}

}  // namespace

void register_loss_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add({.op = op, .domain = domain, .name = "eigen", .make = make});
  };
  add("SoftmaxCrossEntropyLoss", "", make_loss<true>);
  add("CrossEntropy", kInternalDomain, make_loss<true>);
  add("NegativeLogLikelihoodLoss", "", make_loss<false>);
  add("CrossEntropyGrad", kInternalDomain, make_loss_grad<true>);
  add("NegativeLogLikelihoodLossGrad", kInternalDomain, make_loss_grad<false>);
}

}  // namespace graft
