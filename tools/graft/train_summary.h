#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "core/graph/model.h"
#include "train/train_step.h"

namespace graft::cli {

/// What trains, what does not, by which loss and which update: a few lines whatever the model, or
/// with --verbose a line for each parameter besides. `frozen`: names of float initializers; `why`:
/// where the update comes from, may be empty.
void print_train_summary(std::ostream& out, const Model& model, const TrainStep& step,
                         const std::vector<std::string>& frozen, const TrainOptions& options,
                         const std::string& why);

}  // namespace graft::cli
