#include <cstring>
#include <mutex>
#include <unordered_map>

#include "core/ops/kernels/onednn.h"

namespace graft {
namespace {

std::shared_ptr<const OnednnConstant> make_constant(const Tensor& elements,
                                                    const dnnl::memory::desc& from,
                                                    const dnnl::memory::desc& to) {
  const auto size = static_cast<std::int64_t>(to.get_size());
  auto made =
      std::make_shared<OnednnConstant>(OnednnConstant{to, Tensor::zeros(DType::u8, {size})});
  dnnl::memory source(from, onednn_engine(), const_cast<void*>(elements.data()));
  dnnl::memory target(to, onednn_engine(), made->bytes.data());
  dnnl::reorder(source, target).execute(onednn_stream(), source, target);
  onednn_stream().wait();
  return made;
}

bool are_same(const OnednnConstant& a, const OnednnConstant& b) {
  return a.layout == b.layout && std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.bytes()) == 0;
}

/// What somebody holds, by the address of the tensor that it was made of.
struct Held {
  std::mutex mutex;
  std::unordered_multimap<const void*, std::weak_ptr<const OnednnConstant>> constants;
};

}  // namespace

std::shared_ptr<const OnednnConstant> onednn_constant(const Tensor& elements,
                                                      const dnnl::memory::desc& from,
                                                      const dnnl::memory::desc& to) {
  static Held held;
  std::shared_ptr<const OnednnConstant> made = make_constant(elements, from, to);
  const std::scoped_lock lock(held.mutex);
  std::erase_if(held.constants, [](const auto& entry) { return entry.second.expired(); });
  const auto [first, last] = held.constants.equal_range(elements.data());
  for (auto at = first; at != last; ++at) {
    std::shared_ptr<const OnednnConstant> found = at->second.lock();
    if (found != nullptr && are_same(*found, *made)) return found;
  }
  held.constants.emplace(elements.data(), made);
  return made;
}

}  // namespace graft
