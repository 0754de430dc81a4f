#include "core/device/cuda/convolution.h"

#include <map>

#include "core/base/error.h"
#include "core/device/cuda/cudnn.h"
#include "core/device/cuda/cudnn_plan.h"

namespace graft {
namespace {

/// One for each device, whose stream it uses; null where cuDNN makes none: the next convolution
/// asks again.
cudnnHandle_t handle_of(CudaDevice& device) {
  static auto& handles = *new std::map<const CudaDevice*, cudnnHandle_t>;
  cudnnHandle_t& handle = handles[&device];
  if (handle != nullptr) return handle;
  cudnnHandle_t made = nullptr;
  if (cudnn()->create(&made) == CUDNN_STATUS_SUCCESS &&
      cudnn()->set_stream(made, device.stream()) == CUDNN_STATUS_SUCCESS) {
    handle = made;
  }
  return handle;
}

class OnCard final : public ConvolutionPlan {
 public:
  OnCard(std::unique_ptr<const CudnnPlan> plan, cudnnHandle_t handle, CudaDevice& device)
      : plan_(std::move(plan)), handle_(handle), device_(device) {}

  std::size_t workspace_bytes() const override { return plan_->workspace_bytes(); }

  void run(const void* x, const void* w, const void* y, void* workspace) const override {
    const cudnnStatus_t status = plan_->run(handle_, x, w, y, workspace);
    if (status != CUDNN_STATUS_SUCCESS) {
      device_.note_failure(text("a convolution by cuDNN: ", cudnn()->status_text(status)));
    }
  }

 private:
  std::unique_ptr<const CudnnPlan> plan_;
  cudnnHandle_t handle_;
  CudaDevice& device_;
};

}  // namespace

std::shared_ptr<const ConvolutionPlan> make_convolution_plan(const Convolution& convolution,
                                                             CudaDevice& device) {
  if (cudnn() == nullptr) return nullptr;
  const cudnnHandle_t handle = handle_of(device);
  if (handle == nullptr) return nullptr;
  auto plan = CudnnPlan::make(convolution, {.handle = handle});
  if (plan == nullptr) return nullptr;
  return std::make_shared<OnCard>(std::move(plan), handle, device);
}

std::string describe_convolution_library() {
  return describe_cudnn();
}

}  // namespace graft
