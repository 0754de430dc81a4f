#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/callback.h"
#include "train/train_state.h"

namespace graft {

/// All that a run needs to go on as if it had never ended.
struct TrainingState {
  TrainState step;
  RunPosition position;
  /// The numbers of callbacks, by their names.
  std::map<std::string, std::map<std::string, double>> callbacks = {};
};

/// What each callback's numbers are called there: its name, with a number behind where another
/// before it has that name; empty for one that has none.
std::vector<std::string> names_of_state(const std::vector<std::shared_ptr<Callback>>& callbacks);

/// Writes a safetensors file that appears complete or not at all: "weights/<name>",
/// "optimizer/<name>", and the rest as texts of "__metadata__". Throws Error{io}.
void save_training_state(const std::filesystem::path& path, const TrainingState& state);

/// Throws Error{io} if it is no such file.
TrainingState load_training_state(const std::filesystem::path& path);

}  // namespace graft
