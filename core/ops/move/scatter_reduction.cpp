#include "core/ops/move/scatter_reduction.h"

#include <string>

namespace graft {

ScatterReduction reduction_of(const KernelRequest& request) {
  const std::string name = request.attributes().get_string("reduction", "none");
  if (name == "add") return ScatterReduction::add;
  if (name == "mul") return ScatterReduction::mul;
  if (name == "max") return ScatterReduction::max;
  return name == "min" ? ScatterReduction::min : ScatterReduction::none;
}

DType scattered_type(const KernelRequest& request) {
  const ScatterReduction reduction = reduction_of(request);
  const bool counts = reduction == ScatterReduction::add || reduction == ScatterReduction::mul;
  return request.dtype() == DType::boolean && !counts ? DType::u8 : request.dtype();
}

}  // namespace graft
