#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

namespace graft {

/// What kernels have made of tensors that are known before the run, as long as one of them holds
/// it, by the address of the tensor's elements: kernels of several plans share it.
template <class Made>
class HeldConstants {
 public:
  /// What is held of those elements and is the same as `made`, by are_same(a, b); else `made`,
  /// which is held from now on. So a tensor whose elements have changed is no hindrance.
  template <class AreSame>
  std::shared_ptr<const Made> share(const void* elements, std::shared_ptr<const Made> made,
                                    AreSame&& are_same) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(held_, [](const auto& entry) { return entry.second.expired(); });
    const auto [first, last] = held_.equal_range(elements);
    for (auto at = first; at != last; ++at) {
      std::shared_ptr<const Made> found = at->second.lock();
      if (found != nullptr && are_same(*found, *made)) return found;
    }
    held_.emplace(elements, made);
    return made;
  }

 private:
  std::mutex mutex_;
  std::unordered_multimap<const void*, std::weak_ptr<const Made>> held_;
};

}  // namespace graft
