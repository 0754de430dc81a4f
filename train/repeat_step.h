#pragma once

#include <cstddef>
#include <cstdint>

#include "core/graph/model.h"

namespace graft {

/// Lets one call make so many steps, one after the other, by a Scan that carries the variables: the
/// last `variables` inputs and outputs of the model, in the same order. All other inputs and
/// outputs get a first axis of that length. Shapes are known.
void repeat_step(Model& step, std::int64_t times, std::size_t variables);

}  // namespace graft
