#pragma once

#include <cstdint>
#include <string_view>

#include "core/layers/initializer.h"
#include "core/tensor/tensor.h"

namespace graft {

// First values of a parameter, drawn in f32 and converted to `dtype`. The stream of random numbers
// depends on (seed, name), so that a parameter is the same whatever else the model holds.

/// Numbers drawn evenly from [-bound, bound). Throws Error{memory} if they cannot be had.
Tensor init_uniform(std::uint64_t seed, std::string_view name, DType dtype, const Shape& shape,
                    double bound);
/// Numbers drawn from the normal distribution of that deviation and mean; throws alike.
Tensor init_normal(std::uint64_t seed, std::string_view name, DType dtype, const Shape& shape,
                   double deviation, double mean = 0);
/// What `init` says of a weight with those fans; throws alike, and Error{argument} for a fan below
/// 1, a deviation below 0 or a number that is not finite.
Tensor init_weight(const Init& init, const Fans& fans, std::uint64_t seed, std::string_view name,
                   DType dtype, const Shape& shape);

}  // namespace graft
