#pragma once

#include <type_traits>

#include "core/ops/kernels/convert.h"
#include "core/ops/kernels/lanes.h"

namespace graft {

/// `count` numbers as another type: f32 or a short one to f32 or a short one. GCC 12 leaves loops
/// that round to BFloat16 scalar, hence the vectors.
template <class To, class From>
void convert_floats(const From* x, std::int64_t count, To* y) {
  constexpr bool kHasHalf = std::is_same_v<To, Half> || std::is_same_v<From, Half>;
  if constexpr (!kHasHalf) {
    for_each_lanes(count, [&]<int lanes>(std::int64_t i) { store(y + i, load<lanes>(x + i)); });
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) y[i] = convert<To>(x[i]);
  }
}

}  // namespace graft
