#include "core/ops/opset.h"

#include <algorithm>

#include "core/ops/registry.h"

namespace graft {
namespace {

/// The version that brought the op or last changed more than its types.
std::int64_t last_change(const OpDef& def) {
  std::int64_t version = def.since.empty() ? 1 : def.since.front().version;
  for (const Since& since : def.since) {
    if (!since.change.empty() && since.change != "bfloat16") version = since.version;
  }
  return version;
}

}  // namespace

std::int64_t oldest_opset(const Graph& graph) {
  std::int64_t oldest = 1;
  for (const auto& node : graph.nodes()) {
    const OpDef* const def = OpRegistry::instance().find(*node);
    if (def != nullptr && def->domain.empty()) oldest = std::max(oldest, last_change(*def));
    for_each_body(*node, [&](const Graph& body) { oldest = std::max(oldest, oldest_opset(body)); });
  }
  return oldest;
}

}  // namespace graft
