#include "core/ops/table_limit.h"

#include "core/base/limits.h"

namespace graft {
namespace {

/// Entries made so far, where tables count together; else null.
thread_local std::int64_t* entries_made = nullptr;

}  // namespace

void require_small_table(const Node& node, std::int64_t a, std::int64_t b) {
  const std::int64_t most = limits().table_entries;
  const std::int64_t made = entries_made == nullptr ? 0 : *entries_made;
  if (b != 0 && a > (most - made) / b) {
    fail(ErrorKind::unsupported, node.label(), ": it needs a table of ", a, " x ", b, " entries",
         made == 0 ? "" : text(" beside ", made, " of other nodes"), "; ",
         limit_text("tables", most));
  }
  if (entries_made != nullptr) *entries_made += a * b;
}

TablesTogether::TablesTogether() : outer_(entries_made) {
  entries_made = &entries_;
}

TablesTogether::~TablesTogether() {
  entries_made = outer_;
}

}  // namespace graft
