#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace graft {

/// The first `count` samples of a data set, or all of them when it has fewer: for quick runs.
/// Throws Error{argument} if `count` is below 1.
std::shared_ptr<Dataset> first_samples(std::shared_ptr<const Dataset> dataset, std::int64_t count);

}  // namespace graft
