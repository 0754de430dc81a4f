#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace graft {

enum class UpdateKind { sgd, adam, rmsprop, adagrad, accumulate };

/// One update of an f32 parameter on a device; the formulas and names are those of update_cpu.cpp.
/// Rate and step lie on the device, so that a recorded update sees those of the run.
struct DeviceUpdate {
  static constexpr int kMostStates = 3;

  UpdateKind kind = UpdateKind::sgd;
  float scale = 1.0F;
  std::int64_t size = 0;
  /// So many rows of gradients, each times `scale` and its element of `factors`, are added up; 0:
  /// the gradient is there already.
  std::int64_t rows = 0;

  double beta1 = 0.0;  ///< Adam's; momentum, alpha, lr_decay or scale of others
  double beta2 = 0.0;  ///< Adam's; SGD's dampening, RMSprop's momentum
  float epsilon = 0.0F;
  float decay = 0.0F;
  bool gradient_is_bf16 = false;
  bool state_is_bf16[kMostStates] = {};  ///< rounded stochastically
  bool nesterov = false;
  bool decoupled = false;

  // Of one call; null where there is none.
  const float* parameter = nullptr;
  const void* gradient = nullptr;
  const float* factors = nullptr;
  const float* rate = nullptr;
  const std::int64_t* step = nullptr;
  const void* state[kMostStates] = {};
  float* new_parameter = nullptr;
  void* new_state[kMostStates] = {};

  void run(cudaStream_t stream) const;
};

/// Updates of one kind, of which none reads what another writes: one kernel, and the same bits.
struct DeviceUpdates {
  /// As many as the 32,764 bytes of a kernel's arguments hold, which is more than most nets have.
  static constexpr int kMost = 200;

  std::int64_t count = 0;
  DeviceUpdate updates[kMost];

  void run(cudaStream_t stream) const;
};

static_assert(sizeof(DeviceUpdates) <= 32764);

}  // namespace graft
