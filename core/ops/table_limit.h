#pragma once

#include <cstdint>

#include "core/graph/node.h"

namespace graft {

/// Throws Error{unsupported} naming the node unless a table of a * b entries, both not negative, is
/// within Limits::table_entries. Kernels make such tables when a plan is built; their sizes may
/// come from numbers in a file, which cost nothing there.
void require_small_table(const Node& node, std::int64_t a, std::int64_t b = 1);

/// While it lives, all tables that its thread makes are within that limit together: for whoever
/// keeps many kernels.
class TablesTogether {
 public:
  TablesTogether();
  ~TablesTogether();
  TablesTogether(const TablesTogether&) = delete;
  TablesTogether& operator=(const TablesTogether&) = delete;

 private:
  std::int64_t* outer_;
  std::int64_t entries_ = 0;
};

}  // namespace graft
