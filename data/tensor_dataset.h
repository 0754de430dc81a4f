#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "data/dataset.h"

namespace graft {

/// A tensor of samples: `values` is [N, one sample].
struct NamedSamples {
  std::string name;
  Tensor values;
  /// The element type that the model takes, of AllTypes; else f32 for floats, i64 for integers and
  /// bool.
  DType wanted = DType::undefined;
};

/// Samples that lie in tensors. An i64[N] target holds class indices: `classes` is their number, or
/// 0 for the highest label plus one; `further_targets` are as they are. A label that is
/// `ignore_index` is no class, since losses leave it aside: a data set that holds one says 0
/// classes. Elements become the type that is wanted, once; those that have it are shared, not
/// copied. Throws Error{shape} if the tensors do not all have the same N, Error{type} for elements
/// that cannot be converted, and for floats where integers are wanted, Error{argument} if another
/// label is not in [0, classes).
std::shared_ptr<Dataset> tensor_dataset(std::vector<NamedSamples> inputs, NamedSamples target,
                                        std::int64_t classes = 0,
                                        std::vector<NamedSamples> further_targets = {},
                                        std::optional<std::int64_t> ignore_index = {});

}  // namespace graft
