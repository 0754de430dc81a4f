// Both kernels walk the lattice of Graves et al. (2006): state s of 2 * length + 1 is a blank when
// s is even, else label s / 2. alpha(t, s) is the log-probability of all paths that stand in s at
// time t, beta(t, s) that of all ways from there to the end, without t. Sums run in f64.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/parallel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/registry.h"
#include "core/ops/train/ctc_setup.h"

namespace graft {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// log(e^a + e^b + e^c).
double log_sum_exp(double a, double b, double c) {
  const double most = std::max({a, b, c});
  if (most == kNever) return kNever;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

/// One sample.
template <class T>
struct Lattice {
  const CtcSetup& setup;
  const T* scores;  ///< of time 0; those of the next lie batch * classes further
  const std::int64_t* labels;
  std::int64_t length = 0;
  bool is_valid = true;

  Lattice(const CtcSetup& ctc, const T* all_scores, const std::int64_t* targets, std::int64_t b)
      : setup(ctc), scores(all_scores + b * ctc.classes), labels(targets + b * ctc.most_labels) {
    while (length < ctc.most_labels && labels[length] >= 0) {
      is_valid = is_valid && labels[length] < ctc.classes;
      ++length;
    }
  }

  std::int64_t states() const { return 2 * length + 1; }
  std::int64_t label(std::int64_t s) const { return s % 2 == 0 ? setup.blank : labels[s / 2]; }
  double score(std::int64_t t, std::int64_t s) const {
    return static_cast<double>(scores[t * setup.batch * setup.classes + label(s)]);
  }
  /// Whether a path may go from s - 2 to s, over the blank between two different labels.
  bool may_skip_to(std::int64_t s) const {
    return s >= 2 && s % 2 == 1 && labels[s / 2] != labels[s / 2 - 1];
  }

  /// alpha(t) from alpha(t - 1); they may be one row.
  void forward(std::int64_t t, const double* before, double* now) const {
    for (std::int64_t s = states() - 1; s >= 0; --s) {
      if (t == 0) {
        now[s] = s < 2 ? score(0, s) : kNever;
        continue;
      }
      now[s] = score(t, s) + log_sum_exp(before[s], s >= 1 ? before[s - 1] : kNever,
                                         may_skip_to(s) ? before[s - 2] : kNever);
    }
  }
  /// beta(t) from beta(t + 1), in the same row.
  void backward(std::int64_t t, double* beta) const {
    const std::int64_t count = states();
    for (std::int64_t s = 0; s < count; ++s) {
      if (t == setup.steps - 1) {
        beta[s] = s + 2 >= count ? 0.0 : kNever;
        continue;
      }
      const auto via = [&](std::int64_t to) { return beta[to] + score(t + 1, to); };
      beta[s] = log_sum_exp(via(s), s + 1 < count ? via(s + 1) : kNever,
                            s + 2 < count && may_skip_to(s + 2) ? via(s + 2) : kNever);
    }
  }
  /// The log-probability of the target from the last alpha; nothing spells nothing.
  double total(const double* last) const {
    if (setup.steps == 0) return length == 0 ? 0.0 : kNever;
    return log_sum_exp(last[states() - 1], length > 0 ? last[states() - 2] : kNever, kNever);
  }
  /// What a mean divides this sample's loss by, beside the batch.
  double weight() const {
    if (setup.reduction != LossReduction::mean) return 1.0;
    return static_cast<double>(std::max<std::int64_t>(length, 1) * setup.batch);
  }
};

/// The workspace holds a loss and one row of the lattice for each sample.
template <class T>
void run_loss(const CtcSetup& setup, const KernelArgs& args) {
  auto* const losses = static_cast<double*>(args.workspace);
  double* const rows = losses + setup.batch;
  parallel_for(setup.batch, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) {
      const Lattice<T> lattice(setup, args.input<T>(0), args.input<std::int64_t>(1), b);
      if (!lattice.is_valid) {
        losses[b] = kNaN;
        continue;
      }
      double* const alpha = rows + b * setup.most_states();
      for (std::int64_t t = 0; t < setup.steps; ++t) lattice.forward(t, alpha, alpha);
      const double loss = -lattice.total(alpha);
      losses[b] = setup.zero_infinity && std::isinf(loss) ? 0.0 : loss / lattice.weight();
    }
  });
  T* const y = args.output<T>();
  double sum = 0.0;
  for (std::int64_t b = 0; b < setup.batch; ++b) {
    if (setup.reduction == LossReduction::none) y[b] = static_cast<T>(losses[b]);
    sum += losses[b];
  }
  if (setup.reduction == LossReduction::sum) *y = static_cast<T>(sum);
  if (setup.reduction == LossReduction::mean) *y = static_cast<T>(setup.batch == 0 ? kNaN : sum);
}

/// Gradient of one sample times `scale`, into rows of zeros; alpha: [steps, states].
template <class T>
void add_gradient(const Lattice<T>& lattice, double scale, double* alpha, double* beta, T* dx) {
  const CtcSetup& setup = lattice.setup;
  const std::int64_t states = setup.most_states();
  for (std::int64_t t = 0; t < setup.steps; ++t) {
    lattice.forward(t, t == 0 ? alpha : alpha + (t - 1) * states, alpha + t * states);
  }
  const double total = lattice.total(setup.steps == 0 ? alpha : alpha + (setup.steps - 1) * states);
  if (total == kNever && setup.zero_infinity) return;
  for (std::int64_t t = setup.steps; t-- > 0;) {
    lattice.backward(t, beta);
    T* const row = dx + t * setup.batch * setup.classes;
    if (total == kNever) {
      std::fill_n(row, setup.classes, static_cast<T>(kNaN));
      continue;
    }
    for (std::int64_t s = 0; s < lattice.states(); ++s) {
      const double share = std::exp(alpha[t * states + s] + beta[s] - total);
      row[lattice.label(s)] -= static_cast<T>(scale * share);
    }
  }
}

/// The workspace holds alpha of every time and one row of beta for each sample.
template <class T>
void run_grad(const CtcSetup& setup, const KernelArgs& args) {
  const std::int64_t lattice_size = (setup.steps + 1) * setup.most_states();
  parallel_for(setup.batch, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) {
      const Lattice<T> lattice(setup, args.input<T>(1), args.input<std::int64_t>(2), b);
      T* const dx = args.output<T>() + b * setup.classes;
      for (std::int64_t t = 0; t < setup.steps; ++t) {
        std::fill_n(dx + t * setup.batch * setup.classes, setup.classes,
                    static_cast<T>(lattice.is_valid ? 0.0 : kNaN));
      }
      if (!lattice.is_valid) continue;
      const std::int64_t at = setup.reduction == LossReduction::none ? b : 0;
      const double scale = static_cast<double>(args.input<T>(0)[at]) / lattice.weight();
      double* const alpha = static_cast<double*>(args.workspace) + b * lattice_size;
      add_gradient(lattice, scale, alpha, alpha + setup.steps * setup.most_states(), dx);
    }
  });
}

/// Room for `count` doubles a sample.
std::size_t workspace_bytes(const CtcSetup& setup, std::int64_t count) {
  WorkspaceLayout layout;
  layout.reserve<double>(checked_multiply(setup.batch, count));
  return layout.bytes();
}

Kernel make_loss(KernelRequest& request) {
  const CtcSetup setup(request, 0);
  request.need_workspace(workspace_bytes(setup, setup.most_states() + 1));
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [setup](const KernelArgs& args) { run_loss<T>(setup, args); };
  });
  return kernel;
}

Kernel make_grad(KernelRequest& request) {
  const CtcSetup setup(request, 1);
  request.need_workspace(
      workspace_bytes(setup, checked_multiply(setup.steps + 1, setup.most_states())));
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [setup](const KernelArgs& args) { run_grad<T>(setup, args); };
  });
  return kernel;
}

}  // namespace

void register_ctc_cpu(KernelRegistry& registry) {
  registry.add({.op = "CtcLoss", .domain = kInternalDomain, .name = "plain", .make = make_loss});
  registry.add(
      {.op = "CtcLossGrad", .domain = kInternalDomain, .name = "plain", .make = make_grad});
}

}  // namespace graft
