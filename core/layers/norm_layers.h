#pragma once

#include <cstdint>
#include <string>

// Layers that normalize; see core/layers/layer.h. An epsilon is finite and at least 0.

namespace graft {

/// Normalizes each of C channels over the batch when training, by the running statistics else.
/// Holds weight (ones), bias (zeros), running_mean (zeros) and running_var (ones), all [C].
struct BatchNorm {
  std::string name{};
  float epsilon = 1e-5F;
  /// ONNX's: running = momentum * running + (1 - momentum) * batch, one minus PyTorch's; in
  /// [0, 1].
  float momentum = 0.9F;
};

/// Normalizes each sample over its last `axes` axes to mean 0 and variance 1, then multiplies by a
/// weight (ones) and adds a bias (zeros) of those axes' shape. Before opset 17 it is spelled out.
struct LayerNorm {
  std::string name{};
  std::int64_t axes = 1;
  float epsilon = 1e-5F;
  bool bias = true;
};

/// Normalizes each of `groups` equal parts of the channels of x [N,C,*spatial] in each sample, then
/// multiplies by a weight (ones) and adds a bias (zeros), both [C]. Before opset 21 it is spelled
/// out.
struct GroupNorm {
  std::string name{};
  std::int64_t groups = 1;
  float epsilon = 1e-5F;
};

}  // namespace graft
