#pragma once

#include <cstdint>

#include "core/graph/node.h"

namespace graft {

/// The most entries of a table that is made when a plan is built. Its size may come from numbers
/// in a file, which cost nothing there.
inline constexpr std::int64_t kMostTableEntries = std::int64_t{1} << 26;

/// Throws Error{unsupported} naming the node unless a * b entries, both not negative, are allowed.
inline void require_small_table(const Node& node, std::int64_t a, std::int64_t b = 1) {
  if (b == 0 || a <= kMostTableEntries / b) return;
  fail(ErrorKind::unsupported, node.label(), ": it needs a table of ", a, " x ", b,
       " entries, at most ", kMostTableEntries, " are offered");
}

}  // namespace graft
