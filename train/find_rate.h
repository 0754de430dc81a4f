#pragma once

#include <utility>
#include <vector>

#include "train/trainer.h"

namespace graft {

struct RateSearch {
  float lowest = 1e-6F;
  float highest = 10.0F;
  int steps = 100;
};

struct RateFound {
  /// Rates in the order in which they were tried, and the moving average of the loss there.
  std::vector<std::pair<float, double>> tried;
  /// A tenth of the rate at which that loss was least.
  float rate = 0.0F;
};

/// Raises the learning rate from step to step until the loss grows beyond bounds, and gives the
/// trainer back the state that it had. Source: Smith, arXiv 1506.01186, section 3.3. Batches in
/// which no target counts are left out. Throws Error{argument} if the search makes no sense, or
/// unless the trainer has an optimizer and the constant schedule without warm-up, Error{numeric} if
/// the first loss is not finite, and what TrainStep::run and the loader throw; the trainer is then
/// as it was too.
RateFound find_rate(Trainer& trainer, DataLoader& loader, const RateSearch& search = {});

}  // namespace graft
