#include "core/runtime/step_profile.h"

#include "core/graph/node.h"
#include "core/graph/value.h"

namespace graft {

std::size_t operand_bytes(const Node& node) {
  const auto bytes_of_value = [](const Value* value) {
    return value == nullptr ? 0 : value->bytes();
  };
  std::size_t bytes = 0;
  for (const Value* input : node.inputs()) bytes += bytes_of_value(input);
  for (int i = 0; i < node.output_count(); ++i) bytes += bytes_of_value(node.output(i));
  return bytes;
}

}  // namespace graft
