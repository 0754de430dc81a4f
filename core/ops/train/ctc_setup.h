#pragma once

#include <cstdint>

#include "core/ops/kernel.h"
#include "core/ops/train/loss_setup.h"

namespace graft {

/// What one CtcLoss or CtcLossGrad says, decoded: log-probabilities [steps, batch, classes], labels
/// [batch, most_labels].
struct CtcSetup {
  /// `first`: the input that holds the log-probabilities.
  CtcSetup(const KernelRequest& request, int first)
      : steps(request.shape(first)[0]),
        batch(request.shape(first)[1]),
        classes(request.shape(first)[2]),
        most_labels(request.shape(first + 1)[1]),
        blank(request.attributes().get_int("blank", 0)),
        zero_infinity(request.attributes().get_int("zero_infinity", 0) != 0),
        reduction(loss_reduction(request.attributes())) {}

  std::int64_t steps;
  std::int64_t batch;
  std::int64_t classes;
  std::int64_t most_labels;
  std::int64_t blank;
  bool zero_infinity;
  LossReduction reduction;

  std::int64_t most_states() const { return 2 * most_labels + 1; }
};

}  // namespace graft
