// Losses: a team computes each position, then sums over positions go in two passes, pieces first.
// Where there are few, launches are what costs: one block then does all of a loss, and each team of
// a gradient sums the weights itself.
#include <algorithm>

#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/math_cuda.h"
#include "core/ops/kernels/rows_cuda.h"
#include "core/ops/train/loss_setup.h"

namespace graft {
namespace {

/// A sum of losses, and of the weights that a mean divides by.
struct Totals {
  double loss;
  double weight;
};

/// Labels, weights and sizes of one call.
template <class T>
struct Targets {
  const void* labels;
  const T* weights;  ///< by class, or null
  std::int64_t classes;
  std::int64_t inner;
  std::int64_t positions;
  std::int64_t ignored;
  double smoothing;
  bool has_ignored;
  bool wide_labels;

  __device__ std::int64_t label(std::int64_t position) const {
    return wide_labels ? static_cast<const std::int64_t*>(labels)[position]
                       : static_cast<const std::int32_t*>(labels)[position];
  }
  __device__ bool is_ignored(std::int64_t label) const { return has_ignored && label == ignored; }
  __device__ bool is_valid(std::int64_t label) const { return label >= 0 && label < classes; }
  __device__ T class_weight(std::int64_t index) const {
    return weights == nullptr ? T{1} : weights[index];
  }
  /// 0 when ignored, NaN when out of range.
  __device__ double weight(std::int64_t label) const {
    if (is_ignored(label)) return 0.0;
    return is_valid(label) ? static_cast<double>(class_weight(label))
                           : device_math::not_a_number<double>();
  }
  /// The sum of the class weights, which smoothing needs.
  template <class Team>
  __device__ double weight_sum(const Team& team) const {
    if (weights == nullptr || smoothing == 0.0) return static_cast<double>(classes);
    return team_sum(team, classes, [&](std::int64_t c) { return static_cast<double>(weights[c]); });
  }
  /// Where the scores of a position begin; they lie `inner` apart.
  __device__ std::int64_t start(std::int64_t position) const {
    return position / inner * classes * inner + position % inner;
  }
};

/// The sum of all positions' weights.
template <class T, class Team>
__device__ double total_weight(const Targets<T>& targets, const Team& team) {
  return team_sum(team, targets.positions,
                  [&](std::int64_t i) { return targets.weight(targets.label(i)); });
}

/// The largest score of a position and log(sum(exp(score - largest))).
template <class T>
struct Normalizer {
  T largest;
  T log_sum;

  template <class Team>
  __device__ Normalizer(const Team& team, const Targets<T>& targets, const T* x) {
    T most = device_math::lowest<T>();
    for (std::int64_t c = team.rank; c < targets.classes; c += Team::size) {
      most = Larger{}(most, x[c * targets.inner]);
    }
    largest = team.join(most, Larger{});
    const double sum = team_sum(team, targets.classes, [&](std::int64_t c) {
      return static_cast<double>(device_math::exp(x[c * targets.inner] - largest));
    });
    log_sum = static_cast<T>(device_math::log(sum));
  }
};

/// The loss of each position; `x`: scores, or log-probabilities.
template <class T, bool has_scores>
struct PositionLosses {
  Targets<T> targets;
  const T* x;
  T* log_prob;  ///< may be null
  double* losses;

  template <class Team>
  __device__ void operator()(std::int64_t position, const Team& team) const {
    const double loss = at(position, team);
    if (team.rank == 0) losses[position] = loss;
  }

  template <class Team>
  __device__ double at(std::int64_t position, const Team& team) const {
    const std::int64_t start = targets.start(position);
    double shift = 0.0;
    if constexpr (has_scores) {
      const Normalizer<T> by(team, targets, x + start);
      shift = static_cast<double>(by.largest) + static_cast<double>(by.log_sum);
      for (std::int64_t c = team.rank; log_prob != nullptr && c < targets.classes;
           c += Team::size) {
        const std::int64_t at = start + c * targets.inner;
        log_prob[at] = (x[at] - by.largest) - by.log_sum;
      }
    }
    return loss_of(targets.label(position), x + start, shift, team);
  }

 private:
  /// Log-probabilities are scores - shift.
  template <class Team>
  __device__ double loss_of(std::int64_t label, const T* scores, double shift,
                            const Team& team) const {
    if (targets.is_ignored(label)) return 0.0;
    if (!targets.is_valid(label)) return device_math::not_a_number<double>();
    const auto own = static_cast<double>(scores[label * targets.inner]);
    const double hard = -targets.weight(label) * (own - shift);
    if (targets.smoothing == 0.0) return hard;
    const double all = team_sum(team, targets.classes, [&](std::int64_t c) {
      return static_cast<double>(targets.class_weight(c)) *
             static_cast<double>(scores[c * targets.inner]);
    });
    const double spread = shift * targets.weight_sum(team) - all;
    return (1.0 - targets.smoothing) * hard +
           targets.smoothing / static_cast<double>(targets.classes) * spread;
  }
};

/// So few that one block goes over all scores, a thread over those of a position.
bool is_small(const LossSetup& setup) {
  constexpr std::int64_t kMostClasses = 128;
  constexpr std::int64_t kMostScores = 16384;
  return setup.loop.axis <= kMostClasses && setup.positions <= kMostScores &&
         setup.positions * setup.loop.axis <= kMostScores;
}

/// So few that each team of a gradient may read all labels.
bool has_few_positions(const LossSetup& setup) {
  constexpr std::int64_t kMost = 1024;
  return setup.positions <= kMost;
}

/// A row is a piece of the positions. `losses` may be null.
template <class T>
struct SumPieces {
  Targets<T> targets;
  const double* losses;
  Totals* totals;
  std::int64_t pieces;

  template <class Team>
  __device__ void operator()(std::int64_t piece, const Team& team) const {
    const std::int64_t first = targets.positions * piece / pieces;
    const std::int64_t count = targets.positions * (piece + 1) / pieces - first;
    const double loss = losses == nullptr ? 0.0 : team_sum(team, count, [&](std::int64_t i) {
      return losses[first + i];
    });
    const double weight = team_sum(
        team, count, [&](std::int64_t i) { return targets.weight(targets.label(first + i)); });
    if (team.rank == 0) totals[piece] = {loss, weight};
  }
};

/// One row: the whole loss of few positions, a thread each.
template <class T, bool has_scores>
struct SmallLoss {
  PositionLosses<T, has_scores> each;
  T* loss;
  bool is_mean;

  template <class Team>
  __device__ void operator()(std::int64_t, const Team& team) const {
    const Targets<T>& targets = each.targets;
    const double sum =
        team_sum(team, targets.positions, [&](std::int64_t i) { return each.at(i, ThreadTeam{}); });
    const double weight = total_weight(targets, team);
    if (team.rank == 0) *loss = static_cast<T>(is_mean ? sum / weight : sum);
  }
};

/// One row: totals[0] becomes the sum of all pieces, and the loss is written.
template <class T>
struct Finish {
  Totals* totals;
  std::int64_t pieces;
  T* loss;  ///< null where only the weight is asked for
  bool is_mean;

  template <class Team>
  __device__ void operator()(std::int64_t, const Team& team) const {
    const double sum = team_sum(team, pieces, [&](std::int64_t i) { return totals[i].loss; });
    const double weight = team_sum(team, pieces, [&](std::int64_t i) { return totals[i].weight; });
    if (team.rank > 0) return;
    totals[0] = {sum, weight};
    if (loss != nullptr) *loss = static_cast<T>(is_mean ? sum / weight : sum);
  }
};

template <class T>
struct StoreEach {
  const double* losses;
  T* y;
  __device__ void operator()(std::int64_t i) const { y[i] = static_cast<T>(losses[i]); }
};

/// dx = g (Q softmax(x) - q), where q is the weighted (smoothed) target and Q its sum. Where
/// log-probabilities are given instead of scores, dx = -g q.
template <class T, bool has_scores>
struct LossGradient {
  Targets<T> targets;
  const T* dloss;
  const T* x;
  T* dx;
  const Totals* totals;  ///< null unless the loss is a mean and the weights are summed already
  bool is_mean;
  bool is_scalar;

  template <class Team>
  __device__ void operator()(std::int64_t position, const Team& team) const {
    const std::int64_t start = targets.start(position);
    const std::int64_t label = targets.label(position);
    const bool counts = !targets.is_ignored(label);
    const double divisor = !is_mean            ? 1.0
                           : totals == nullptr ? total_weight(targets, team)
                                               : totals->weight;
    const double g = static_cast<double>(dloss[is_scalar ? 0 : position]) / divisor;
    const double target = (1.0 - targets.smoothing) * targets.weight(label);
    const double spread = targets.smoothing / static_cast<double>(targets.classes);
    const double sum = target + spread * targets.weight_sum(team);
    const T hard = counts ? static_cast<T>(g * target) : T{0};
    const T soft = counts ? static_cast<T>(g * spread) : T{0};
    const T scale = counts ? static_cast<T>(g * sum) : T{0};
    const auto finish = [&](std::int64_t c, T from_all) {
      const T own = c == label ? hard : T{0};
      dx[start + c * targets.inner] = from_all - own - soft * targets.class_weight(c);
    };
    if constexpr (has_scores) {
      const Normalizer<T> by(team, targets, x + start);
      for (std::int64_t c = team.rank; c < targets.classes; c += Team::size) {
        const T centred = (x[start + c * targets.inner] - by.largest) - by.log_sum;
        finish(c, device_math::exp(centred) * scale);
      }
    } else {
      for (std::int64_t c = team.rank; c < targets.classes; c += Team::size) {
        finish(c, scale * T{0});  // NaN stays NaN
      }
    }
  }
};

template <class T>
Targets<T> targets_of(const LossSetup& setup, const KernelArgs& args) {
  return {args.inputs[static_cast<std::size_t>(setup.first_input) + 1],
          setup.has_weights ? args.input<T>(setup.first_input + 2) : nullptr,
          setup.loop.axis,
          setup.loop.inner,
          setup.positions,
          setup.ignored,
          setup.smoothing,
          setup.has_ignored,
          setup.wide_labels};
}

std::int64_t pieces_of(const LossSetup& setup) {
  return std::clamp<std::int64_t>(setup.positions / 1024, 1, 256);
}

template <class Body>
void start_positions(const Body& body, const LossSetup& setup, cudaStream_t stream) {
  const std::int64_t rows = setup.loop.outer == 0 ? 0 : setup.positions;
  start_rows(body, rows, setup.loop.axis, setup.loop.inner == 1, stream);
}

template <class T>
void sum_up(const Targets<T>& targets, const double* losses, Totals* totals, std::int64_t pieces,
            T* loss, bool is_mean, cudaStream_t stream) {
  start_rows_by<BlockTeam>(SumPieces<T>{targets, losses, totals, pieces}, pieces, stream);
  start_rows_by<BlockTeam>(Finish<T>{totals, pieces, loss, is_mean}, 1, stream);
}

/// The workspace holds the totals of the pieces, and a loss a position until they are summed.
template <bool has_scores>
Kernel make_loss(KernelRequest& request) {
  const LossSetup setup(request, 0);
  const std::int64_t pieces = pieces_of(setup);
  request.need_workspace(static_cast<std::size_t>(pieces) * sizeof(Totals) +
                         bytes_of(DType::f64, setup.positions));
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const Targets<T> targets = targets_of<T>(setup, args);
    auto* const totals = static_cast<Totals*>(args.workspace);
    auto* const losses = reinterpret_cast<double*>(totals + pieces);
    T* const log_prob = setup.has_log_prob ? args.output<T>(1) : nullptr;
    const PositionLosses<T, has_scores> each{targets, args.input<T>(0), log_prob, losses};
    const bool is_mean = setup.reduction == LossReduction::mean;
    if (setup.reduction != LossReduction::none && is_small(setup)) {
      return start_rows_by<BlockTeam>(SmallLoss<T, has_scores>{each, args.output<T>(), is_mean}, 1,
                                      stream);
    }
    start_positions(each, setup, stream);
    if (setup.reduction == LossReduction::none) {
      start_items(StoreEach<T>{losses, args.output<T>()}, setup.positions, stream);
    } else {
      sum_up(targets, losses, totals, pieces, args.output<T>(), is_mean, stream);
    }
  });
}

template <bool has_scores>
Kernel make_loss_grad(KernelRequest& request) {
  const LossSetup setup(request, 1);
  const std::int64_t pieces = pieces_of(setup);
  request.need_workspace(static_cast<std::size_t>(pieces) * sizeof(Totals));
  return cuda_float_kernel(request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const Targets<T> targets = targets_of<T>(setup, args);
    auto* const totals = static_cast<Totals*>(args.workspace);
    const bool is_mean = setup.reduction == LossReduction::mean;
    const bool sums_first = is_mean && !has_few_positions(setup);
    if (sums_first) sum_up<T>(targets, nullptr, totals, pieces, nullptr, true, stream);
    const LossGradient<T, has_scores> gradient{targets,
                                               args.input<T>(0),
                                               args.input<T>(1),
                                               args.output<T>(),
                                               sums_first ? totals : nullptr,
                                               is_mean,
                                               setup.reduction != LossReduction::none};
    start_positions(gradient, setup, stream);
  });
}

}  // namespace

void register_loss_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "rows",
                   {{"SoftmaxCrossEntropyLoss", make_loss<true>},
                    {"CrossEntropy", make_loss<true>, kInternalDomain},
                    {"NegativeLogLikelihoodLoss", make_loss<false>},
                    {"CrossEntropyGrad", make_loss_grad<true>, kInternalDomain},
                    {"NegativeLogLikelihoodLossGrad", make_loss_grad<false>, kInternalDomain}});
}

}  // namespace graft
