#pragma once

#include <string_view>
#include <vector>

#include "core/passes/pass_watch.h"

namespace graft::fuzz {

/// Of the passes that changed something, those without which a model computes the same: rewrites,
/// and what planning moves and joins.
std::vector<std::string_view> optional_passes(const passes::PassWatch& watch);

/// Whether the pass promises the same bits, not only the same numbers but for rounding.
bool keeps_bits(std::string_view pass);

}  // namespace graft::fuzz
