#include <cstring>

#include "core/ops/kernels/held_constants.h"
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

}  // namespace

std::shared_ptr<const OnednnConstant> onednn_constant(const Tensor& elements,
                                                      const dnnl::memory::desc& from,
                                                      const dnnl::memory::desc& to) {
  static HeldConstants<OnednnConstant> held;
  return held.share(elements.data(), make_constant(elements, from, to), are_same);
}

}  // namespace graft
