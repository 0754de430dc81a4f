#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "data/dataset.h"

namespace graft {

/// A tensor of samples: `values` is [N, one sample].
struct NamedSamples {
  std::string name;
  Tensor values;
};

/// Samples that lie in tensors. An i64[N] target holds class indices: `classes` is their number, or
/// 0 for the highest label plus one. Other float types become f32 and other integers and bool i64,
/// once; f32 and i64 elements are shared, not copied.
/// Throws Error{shape} if the tensors do not all have the same N, Error{type} for elements that
/// cannot be converted, Error{argument} if a label is not in [0, classes).
std::shared_ptr<Dataset> tensor_dataset(std::vector<NamedSamples> inputs, NamedSamples target,
                                        std::int64_t classes = 0);

}  // namespace graft
