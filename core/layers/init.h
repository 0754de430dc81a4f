#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/tensor.h"

namespace graft {

// First values of a parameter, drawn in f32 and converted to `dtype`. The stream of random numbers
// depends on (seed, name), so that a parameter is the same whatever else the model holds.

/// Numbers drawn evenly from [-bound, bound). Throws Error{memory} if they cannot be had.
Tensor init_uniform(std::uint64_t seed, std::string_view name, DType dtype, const Shape& shape,
                    double bound);
/// Numbers drawn from the normal distribution of mean 0 and that deviation; throws alike.
Tensor init_normal(std::uint64_t seed, std::string_view name, DType dtype, const Shape& shape,
                   double deviation);

}  // namespace graft
