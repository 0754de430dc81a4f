#pragma once

#include <cstring>

#include "core/ops/kernel.h"
#include "core/tensor/tensor.h"

namespace graft {

/// Copies a tensor made when the plan is built to output 0.
inline Kernel copy_kernel(const Tensor& tensor) {
  return [tensor](const KernelArgs& args) {
    if (tensor.bytes() > 0) std::memcpy(args.outputs[0], tensor.data(), tensor.bytes());
  };
}

}  // namespace graft
