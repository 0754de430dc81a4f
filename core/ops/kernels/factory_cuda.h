#pragma once

#include <initializer_list>
#include <string_view>

#include "core/device/cuda/cuda_device.h"
#include "core/ops/registry.h"

// What the factories of kernels for cards have in common.
namespace graft {

/// The kernel that calls body.operator()<T>(args, stream), T the element type of input 0; empty
/// unless that is one of `types`.
template <class Types, class Body>
Kernel cuda_kernel(Types types, const KernelRequest& request, const Body& body) {
  Kernel kernel;
  visit_dtype(types, request.dtype(), [&]<class T>() {
    kernel = [body, stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      body.template operator()<T>(args, stream);
    };
  });
  return kernel;
}

/// The same of f32 and f64.
template <class Body>
Kernel cuda_float_kernel(const KernelRequest& request, const Body& body) {
  return cuda_kernel(FloatTypes{}, request, body);
}

struct CudaKernel {
  std::string_view op;
  KernelFactory make;
  std::string_view domain = "";
};

/// All by one name.
inline void add_cuda_kernels(KernelRegistry& registry, std::string_view name,
                             std::initializer_list<CudaKernel> kernels) {
  for (const auto& [op, make, domain] : kernels) {
    registry.add(
        {.op = op, .domain = domain, .device = DeviceKind::cuda, .name = name, .make = make});
  }
}

}  // namespace graft
