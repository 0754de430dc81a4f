#include "core/graph/reads.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace graft {

bool only_rearranges(const Use& use) {
  static constexpr std::array<std::string_view, 16> kOps{
      "Transpose", "Reshape", "Squeeze",        "Unsqueeze",       "Flatten", "Identity",
      "Cast",      "Concat",  "Slice",          "Split",           "Expand",  "Tile",
      "CastLike",  "Dropout", "QuantizeLinear", "DequantizeLinear"};
  const Node& node = *use.node;
  return node.domain().empty() && (use.index == 0 || node.is("Concat")) &&
         std::ranges::find(kOps, node.op_type()) != kOps.end();
}

}  // namespace graft
