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
  const Key key(&device, convolution);
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  return plans[key] = make_convolution_plan(convolution, device);
}

}  // namespace graft
