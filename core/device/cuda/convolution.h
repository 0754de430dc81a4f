#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device/cuda/cuda_device.h"

namespace graft {

/// A convolution or one of its gradients, as a library is asked for it. Two or three spatial axes.
struct Convolution {
  enum class Part { forward, input_gradient, weight_gradient };
  enum class Type { f32, bf16 };

  Part part = Part::forward;
  Type type = Type::f32;  ///< of all three tensors; sums are f32
  bool allows_tf32 = false;
  /// Images in the order of axes N D H W C, the weight as M D H W C.
  bool is_channels_last = false;
  /// The result is added to what lies where it goes.
  bool adds = false;
  std::vector<std::int64_t> x;  ///< [N, C, D...]
  std::vector<std::int64_t> w;  ///< [M, C/groups, K...]
  std::vector<std::int64_t> y;  ///< [N, M, E...]
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> pads_begin;
  std::vector<std::int64_t> pads_end;

  auto operator<=>(const Convolution&) const = default;
};

/// A convolution that a library has made ready.
class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  ConvolutionPlan() = default;
  ConvolutionPlan(const ConvolutionPlan&) = delete;
  ConvolutionPlan& operator=(const ConvolutionPlan&) = delete;

  virtual std::size_t workspace_bytes() const = 0;
  /// Gives it to the device; of the three, the one that `Convolution::part` makes is written. The
  /// workspace is aligned to Device::kAlignment. What goes wrong, the device says when it is waited
  /// for.
  virtual void run(const void* x, const void* w, const void* y, void* workspace) const = 0;
};

/// By cuDNN, or on the emulated device by loops that stand in for it; null where there is no
/// library, or none of its engines takes it. What was planned once is kept.
std::shared_ptr<const ConvolutionPlan> plan_convolution(const Convolution& convolution,
                                                        CudaDevice& device);

/// The same, made anew; one for cards, one for the emulated device.
std::shared_ptr<const ConvolutionPlan> make_convolution_plan(const Convolution& convolution,
                                                             CudaDevice& device);

/// "cuDNN 9.19.0"; or "no cuDNN: " and why.
std::string describe_convolution_library();

}  // namespace graft
