#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/graph/value.h"

namespace graft {

/// Says which batch fits a budget, or a device's memory, when one like `types` does not: their
/// first dims become smaller together. `plan` throws an Error where a batch does not fit. Empty if
/// the first type has no batch.
std::string largest_batch(std::vector<ValueType> types,
                          const std::function<void(const std::vector<ValueType>&)>& plan);

}  // namespace graft
