#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ops/infer.h"

namespace graft {

enum class PadMode { constant, reflect, edge, wrap };

/// Throws Error{model} for another name.
PadMode pad_mode(const Node& node);

/// Elements added before and after each axis; negative ones take away.
struct PadAmounts {
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
};

/// nullopt when pads or axes are not known before the run.
/// Throws Error{shape} where they do not fit a data of `rank` axes.
std::optional<PadAmounts> pad_amounts(const InferContext& context, int rank);

}  // namespace graft
