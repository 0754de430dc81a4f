#include "train/train_state.h"

namespace graft {

TrainState clone(const TrainState& state) {
  TrainState copy = state;
  for (auto* const tensors : {&copy.weights, &copy.optimizer}) {
    for (auto& [name, tensor] : *tensors) tensor = tensor.clone();
  }
  return copy;
}

}  // namespace graft
