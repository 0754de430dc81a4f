#include "core/base/at.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/strided_cuda.h"

namespace graft {
namespace {

Kernel make_transpose(KernelRequest& request) {
  const Shape& x = request.shape();
  const Shape& y = request.output().shape;
  const int rank = x.rank();
  const std::vector<std::int64_t> order = request.attributes().get_ints("perm");
  const std::vector<std::int64_t> strides = x.strides();
  std::vector<std::int64_t> source;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t axis = order.empty() ? rank - 1 - i : at(order, i);
    source.push_back(at(strides, axis < 0 ? axis + rank : axis));
  }
  return device_strided_kernel(request, DeviceStridedCopy(y.dims(), y.strides(), source));
}

}  // namespace

void register_transpose_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "strided", {{"Transpose", make_transpose}});
}

}  // namespace graft
