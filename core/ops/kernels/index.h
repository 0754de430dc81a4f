#pragma once

#include <cstdint>

#include "core/ops/kernel.h"
#include "core/ops/kernels/kernel_dtypes.h"

namespace graft {

/// A position along a dim of `dim` >= 1: negative ones count from the end; those out of range are
/// clamped, because a running kernel cannot refuse them.
constexpr std::int64_t clamp_index(std::int64_t index, std::int64_t dim) {
  const std::int64_t from_start = index < 0 ? index + dim : index;
  return from_start < 0 ? 0 : from_start < dim ? from_start : dim - 1;
}

/// Calls visitor.template operator()<Index>() with the C++ type of an index input.
template <class Visitor>
bool visit_index(const KernelRequest& request, int input, Visitor&& visitor) {
  return visit_kernel_dtype(TypeList<std::int64_t, std::int32_t>{}, request.dtype(input), visitor);
}

/// An index input of a kernel that is compiled once for both types.
class IndexInput {
 public:
  IndexInput(const KernelRequest& request, int input)
      : input_(static_cast<std::size_t>(input)), is_short_(request.dtype(input) == DType::i32) {}

  /// Reads index i of a call.
  class Values {
   public:
    Values(const void* data, bool is_short) : data_(data), is_short_(is_short) {}
    std::int64_t operator[](std::int64_t i) const {
      return is_short_ ? static_cast<const std::int32_t*>(data_)[i]
                       : static_cast<const std::int64_t*>(data_)[i];
    }

   private:
    const void* data_;
    bool is_short_;
  };
  Values of(const KernelArgs& args) const { return {args.inputs[input_], is_short_}; }

 private:
  std::size_t input_;
  bool is_short_;
};

}  // namespace graft
