#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/model.h"
#include "core/tensor/tensor.h"

namespace graft::test {

/// y = x w + b with x [N,2], w [2,2] "w" = {{1,2},{3,4}}, b [2] "b" = {0.5,-0.5}.
Model linear_model();
/// With a second output: z = x v with v [2,1] "v" = {{2},{3}}.
Model two_outputs();

/// Fixed pseudo-random numbers in [-1, 1).
Tensor random_tensor(const Shape& shape, std::uint64_t seed);
/// Class indices 0, 1, ..., classes-1, 0, ...
Tensor cyclic_labels(std::int64_t count, std::int64_t classes);

/// The bytes of all initializers, by name.
std::vector<Tensor> snapshot(const Model& model);

}  // namespace graft::test
