#include "core/ops/dynamic.h"

#include "core/ops/registry.h"

namespace graft {

const Datum& DynamicCall::at(int index) const {
  static const Datum nothing;
  const auto i = static_cast<std::size_t>(index);
  return i < inputs_.size() ? inputs_[i] : nothing;
}

const Tensor& DynamicCall::tensor(int index) const {
  if (!at(index).is_tensor()) {
    fail(ErrorKind::type, "input ", index, " is ", describe(at(index)), ", wanted a tensor");
  }
  return at(index).tensor();
}

const Sequence& DynamicCall::sequence(int index) const {
  if (!at(index).is_sequence()) {
    fail(ErrorKind::type, "input ", index, " is ", describe(at(index)), ", wanted a sequence");
  }
  return at(index).sequence();
}

std::vector<Datum> call_dynamic(const Node& node, std::span<const Datum> inputs) {
  const DynamicKernel kernel = KernelRegistry::instance().find_dynamic(node);
  if (kernel == nullptr) {
    fail(ErrorKind::unsupported, node.label(), ": no kernel takes data of these kinds");
  }
  return kernel(DynamicCall(node, inputs));
}

}  // namespace graft
