#pragma once

#include <algorithm>
#include <iterator>

#include "core/base/dtype.h"

namespace graft {

// A build for certain models has kernels for the types of their values alone: CMake names these
// types to core/ops (GRAFT_MODELS, adr/0083).

/// kIsForCertainModels: whether it is such a build. kHasKernels<T>: whether it has kernels that
/// work on T.
#if defined(GRAFT_KERNEL_DTYPES)
inline constexpr bool kIsForCertainModels = true;
inline constexpr DType kKernelDTypes[] = {GRAFT_KERNEL_DTYPES};
template <class T>
inline constexpr bool kHasKernels = std::find(std::begin(kKernelDTypes), std::end(kKernelDTypes),
                                              dtype_of<T>) != std::end(kKernelDTypes);
#else
inline constexpr bool kIsForCertainModels = false;
template <class T>
inline constexpr bool kHasKernels = true;
#endif

/// Whether `dtype` is T's and this build has kernels for it. What is compiled behind a false goes.
template <class T>
bool is_kernel_dtype(DType dtype) {
  return kHasKernels<T> && dtype == dtype_of<T>;
}

/// visit_dtype, for kernels: false of a type that this build has none for.
template <class... Ts, class Visitor>
bool visit_kernel_dtype(TypeList<Ts...> /*types*/, DType dtype, Visitor&& visitor) {
  return ((is_kernel_dtype<Ts>(dtype) && (visitor.template operator()<Ts>(), true)) || ...);
}

}  // namespace graft
