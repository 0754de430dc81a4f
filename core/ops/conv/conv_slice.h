#pragma once

#include <cstdint>

#include "core/ops/conv/conv_clamp.h"

namespace graft {

/// Some sources' part of a weight's block.
struct Slice {
  const float* weight;     ///< [tap][source][target]
  std::int64_t first;      ///< source channel
  std::int64_t channels;   ///< sources
  std::int64_t width;      ///< targets
  const float* start;      ///< what products are added to
  bool has_own_start;      ///< each target, at its place; else one row serves all
  const ConvClamp* clamp;  ///< of the last slice, where there is one
};

}  // namespace graft
