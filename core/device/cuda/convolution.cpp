#include "core/device/cuda/convolution.h"

#include <map>
#include <mutex>
#include <utility>

namespace graft {

std::shared_ptr<const ConvolutionPlan> plan_convolution(const Convolution& convolution,
                                                        CudaDevice& device) {
  using Key = std::pair<const CudaDevice*, Convolution>;
  static std::mutex& mutex = *new std::mutex;
  static auto& plans = *new std::map<Key, std::shared_ptr<const ConvolutionPlan>>;
  const auto turn = device.take_turn();
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = plans.try_emplace(Key(&device, convolution));
  if (is_new) at->second = make_convolution_plan(convolution, device);
  return at->second;
}

}  // namespace graft
