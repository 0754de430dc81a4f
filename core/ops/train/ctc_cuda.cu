// The lattice of ctc_cpu.cpp, a block a sample: its threads take the states of one time side by
// side. Rows of the lattice lie in the workspace.
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/math_cuda.h"
#include "core/ops/kernels/rows_cuda.h"
#include "core/ops/train/ctc_setup.h"

namespace graft {
namespace {

__device__ double never() {
  return device_math::lowest<double>();
}

/// log(e^a + e^b + e^c).
__device__ double log_sum_exp(double a, double b, double c) {
  const double most = Larger{}(a, Larger{}(b, c));
  if (most == never()) return most;
  return most + device_math::log(device_math::exp(a - most) + device_math::exp(b - most) +
                                 device_math::exp(c - most));
}

/// One sample.
template <class T>
struct Lattice {
  const CtcSetup& setup;
  const T* scores;
  const std::int64_t* labels;
  std::int64_t length = 0;
  bool is_valid = true;

  __device__ Lattice(const CtcSetup& ctc, const T* all_scores, const std::int64_t* targets,
                     std::int64_t b)
      : setup(ctc), scores(all_scores + b * ctc.classes), labels(targets + b * ctc.most_labels) {
    while (length < ctc.most_labels && labels[length] >= 0) {
      is_valid = is_valid && labels[length] < ctc.classes;
      ++length;
    }
  }

  __device__ std::int64_t states() const { return 2 * length + 1; }
  __device__ std::int64_t label(std::int64_t s) const {
    return s % 2 == 0 ? setup.blank : labels[s / 2];
  }
  __device__ double score(std::int64_t t, std::int64_t s) const {
    return static_cast<double>(scores[t * setup.batch * setup.classes + label(s)]);
  }
  __device__ bool may_skip_to(std::int64_t s) const {
    return s >= 2 && s % 2 == 1 && labels[s / 2] != labels[s / 2 - 1];
  }

  /// alpha(t) from alpha(t - 1).
  __device__ void forward(const BlockTeam& team, std::int64_t t, const double* before,
                          double* now) const {
    for (std::int64_t s = team.rank; s < states(); s += BlockTeam::size) {
      if (t == 0) {
        now[s] = s < 2 ? score(0, s) : never();
        continue;
      }
      now[s] = score(t, s) + log_sum_exp(before[s], s >= 1 ? before[s - 1] : never(),
                                         may_skip_to(s) ? before[s - 2] : never());
    }
    team.sync();
  }
  /// beta(t) from beta(t + 1).
  __device__ void backward(const BlockTeam& team, std::int64_t t, const double* after,
                           double* now) const {
    const std::int64_t count = states();
    for (std::int64_t s = team.rank; s < count; s += BlockTeam::size) {
      if (t == setup.steps - 1) {
        now[s] = s + 2 >= count ? 0.0 : never();
        continue;
      }
      const auto via = [&](std::int64_t to) { return after[to] + score(t + 1, to); };
      now[s] = log_sum_exp(via(s), s + 1 < count ? via(s + 1) : never(),
                           s + 2 < count && may_skip_to(s + 2) ? via(s + 2) : never());
    }
    team.sync();
  }
  /// The log-probability of the target from the last alpha; nothing spells nothing.
  __device__ double total(const double* last) const {
    if (setup.steps == 0) return length == 0 ? 0.0 : never();
    return log_sum_exp(last[states() - 1], length > 0 ? last[states() - 2] : never(), never());
  }
  /// What a mean divides this sample's loss by, beside the batch.
  __device__ double weight() const {
    if (setup.reduction != LossReduction::mean) return 1.0;
    return static_cast<double>((length < 1 ? 1 : length) * setup.batch);
  }
};

__host__ __device__ std::int64_t states_of(const CtcSetup& setup) {
  return 2 * setup.most_labels + 1;
}

/// A row is a sample.
template <class T>
struct SampleLoss {
  CtcSetup setup;
  const T* scores;
  const std::int64_t* targets;
  double* losses;
  double* rows;  ///< two of states a sample

  __device__ void operator()(std::int64_t b, const BlockTeam& team) const {
    const Lattice<T> lattice(setup, scores, targets, b);
    if (!lattice.is_valid) {
      if (team.rank == 0) losses[b] = device_math::not_a_number<double>();
      return;
    }
    const std::int64_t states = states_of(setup);
    double* const even = rows + b * 2 * states;
    double* const odd = even + states;
    for (std::int64_t t = 0; t < setup.steps; ++t) {
      lattice.forward(team, t, t % 2 == 0 ? odd : even, t % 2 == 0 ? even : odd);
    }
    if (team.rank > 0) return;
    const double loss = -lattice.total(setup.steps % 2 == 0 ? odd : even);
    losses[b] = setup.zero_infinity && loss - loss != 0.0 ? 0.0 : loss / lattice.weight();
  }
};

/// One row, of all samples.
template <class T>
struct SumSamples {
  CtcSetup setup;
  const double* losses;
  T* y;
  __device__ void operator()(std::int64_t, const BlockTeam& team) const {
    if (setup.reduction == LossReduction::none) {
      for (std::int64_t b = team.rank; b < setup.batch; b += BlockTeam::size) {
        y[b] = static_cast<T>(losses[b]);
      }
      return;
    }
    const double sum = team_sum(team, setup.batch, [&](std::int64_t b) { return losses[b]; });
    const bool is_mean_of_nothing = setup.reduction == LossReduction::mean && setup.batch == 0;
    if (team.rank == 0) {
      *y = static_cast<T>(is_mean_of_nothing ? device_math::not_a_number<double>() : sum);
    }
  }
};

template <class T>
struct SampleGradient {
  CtcSetup setup;
  const T* dloss;
  const T* scores;
  const std::int64_t* targets;
  T* dx;
  double* rows;  ///< steps + 2 of states a sample: alpha, and two of beta

  __device__ void operator()(std::int64_t b, const BlockTeam& team) const {
    const Lattice<T> lattice(setup, scores, targets, b);
    const std::int64_t states = states_of(setup);
    double* const alpha = rows + b * (setup.steps + 2) * states;
    double total = 0.0;
    if (lattice.is_valid) {
      for (std::int64_t t = 0; t < setup.steps; ++t) {
        lattice.forward(team, t, alpha + (t - (t > 0 ? 1 : 0)) * states, alpha + t * states);
      }
      total = lattice.total(alpha + (setup.steps - (setup.steps > 0 ? 1 : 0)) * states);
    }
    const bool is_infinite = total == never();
    const double empty = !lattice.is_valid || (is_infinite && !setup.zero_infinity)
                             ? device_math::not_a_number<double>()
                             : 0.0;
    const bool has_paths = lattice.is_valid && !is_infinite;
    const double scale =
        static_cast<double>(dloss[setup.reduction == LossReduction::none ? b : 0]) /
        lattice.weight();
    double* const betas = alpha + setup.steps * states;
    for (std::int64_t t = setup.steps; t-- > 0;) {
      double* const share = alpha + t * states;
      if (has_paths) {
        double* const beta = betas + t % 2 * states;
        lattice.backward(team, t, betas + (t + 1) % 2 * states, beta);
        for (std::int64_t s = team.rank; s < lattice.states(); s += BlockTeam::size) {
          share[s] = scale * device_math::exp(share[s] + beta[s] - total);
        }
        team.sync();
      }
      write(team, lattice, has_paths, empty, share, dx + (t * setup.batch + b) * setup.classes);
    }
  }

 private:
  /// The states of each class, in their order.
  __device__ void write(const BlockTeam& team, const Lattice<T>& lattice, bool has_paths,
                        double empty, const double* share, T* row) const {
    for (std::int64_t c = team.rank; c < setup.classes; c += BlockTeam::size) {
      T sum = static_cast<T>(empty);
      for (std::int64_t s = 0; has_paths && s < lattice.states(); ++s) {
        if (lattice.label(s) == c) sum -= static_cast<T>(share[s]);
      }
      row[c] = sum;
    }
  }
};

std::size_t bytes_of_rows(const CtcSetup& setup, std::int64_t rows) {
  return bytes_of(DType::f64,
                  checked_multiply(setup.batch, checked_multiply(rows, states_of(setup))));
}

Kernel make_loss(KernelRequest& request) {
  const CtcSetup setup(request, 0);
  request.need_workspace(bytes_of(DType::f64, setup.batch) + bytes_of_rows(setup, 2));
  return cuda_float_kernel(request, [setup]<class T>(const KernelArgs& args, cudaStream_t stream) {
    auto* const losses = static_cast<double*>(args.workspace);
    start_rows_by<BlockTeam>(SampleLoss<T>{setup, args.input<T>(0), args.input<std::int64_t>(1),
                                           losses, losses + setup.batch},
                             setup.batch, stream);
    start_rows_by<BlockTeam>(SumSamples<T>{setup, losses, args.output<T>()}, 1, stream);
  });
}

Kernel make_grad(KernelRequest& request) {
  const CtcSetup setup(request, 1);
  request.need_workspace(bytes_of_rows(setup, setup.steps + 2));
  return cuda_float_kernel(request, [setup]<class T>(const KernelArgs& args, cudaStream_t stream) {
    const SampleGradient<T> gradient{setup,
                                     args.input<T>(0),
                                     args.input<T>(1),
                                     args.input<std::int64_t>(2),
                                     args.output<T>(),
                                     static_cast<double*>(args.workspace)};
    start_rows_by<BlockTeam>(gradient, setup.batch, stream);
  });
}

}  // namespace

void register_ctc_cuda(KernelRegistry& registry) {
  add_cuda_kernels(
      registry, "blocks",
      {{"CtcLoss", make_loss, kInternalDomain}, {"CtcLossGrad", make_grad, kInternalDomain}});
}

}  // namespace graft
