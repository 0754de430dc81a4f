#include "tests/fuzz/target.h"

namespace graft::fuzz {

std::span<const Target> byte_targets() {
  static constexpr Target kTargets[] = {
      {"cifar", run_cifar},   {"csv", run_csv}, {"data", run_data},
      {"gzip", run_gzip},     {"idx", run_idx}, {"model", run_model},
      {"npy", run_npy},       {"npz", run_npz}, {"safetensors", run_safetensors},
      {"tensor", run_tensor},
  };
  return kTargets;
}

}  // namespace graft::fuzz
