#include "core/base/at.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

Kernel make_transpose(KernelRequest& request) {
  const Shape& x = request.shape();
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const int rank = x.rank();
  const std::vector<std::int64_t> order = request.attributes().get_ints("perm");
  const std::vector<std::int64_t> strides = x.strides();
  std::vector<std::int64_t> source;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t axis = order.empty() ? rank - 1 - i : at(order, i);
    source.push_back(at(strides, axis < 0 ? axis + rank : axis));
  }
  return strided_kernel(request.dtype(), StridedCopy(y.dims(), y.strides(), source));
}

}  // namespace

void register_transpose_cpu(KernelRegistry& registry) {
  registry.add({.op = "Transpose", .name = "plain", .make = make_transpose});
}

}  // namespace graft
