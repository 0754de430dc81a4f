#pragma once

#include <cudnn.h>

#include <memory>
#include <string>

#include "core/device/cuda/convolution.h"

namespace graft {

/// For which card cuDNN plans: one that is there, by a handle, or one that is described by the JSON
/// that cuDNN writes of it.
struct CudnnCard {
  cudnnHandle_t handle = nullptr;
  std::string properties{};
};

/// What cuDNN makes of a convolution: its engine and all that is decided about it. Engines whose
/// results may differ from run to run are passed over, and those of tensor cores unless the type is
/// bf16 or TF32 is allowed.
class CudnnPlan {
 public:
  /// Null if no engine takes it; `why`, if not null, then says what cuDNN said last.
  static std::unique_ptr<const CudnnPlan> make(const Convolution& convolution,
                                               const CudnnCard& card, std::string* why = nullptr);
  ~CudnnPlan();
  CudnnPlan(const CudnnPlan&) = delete;
  CudnnPlan& operator=(const CudnnPlan&) = delete;

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// On the stream of the handle, which is that of the plan's card.
  cudnnStatus_t run(cudnnHandle_t handle, const void* x, const void* w, const void* y,
                    void* workspace) const;

 private:
  struct Parts;
  explicit CudnnPlan(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace graft
