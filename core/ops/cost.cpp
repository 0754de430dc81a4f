#include "core/ops/cost.h"

#include <algorithm>

#include "core/base/machine.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

std::size_t bytes_of_value(const Value* value) {
  return value == nullptr ? 0 : value->bytes();
}

}  // namespace

std::optional<std::int64_t> node_multiply_adds(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  if (def == nullptr || def->multiply_adds == nullptr) return 0;
  return def->multiply_adds(node);
}

double cost_in_bytes(const Node& node) {
  std::size_t bytes = 0;
  for (const Value* input : node.inputs()) bytes += bytes_of_value(input);
  for (int i = 0; i < node.output_count(); ++i) bytes += bytes_of_value(node.output(i));
  return static_cast<double>(bytes) +
         static_cast<double>(node_multiply_adds(node).value_or(0)) / kMultiplyAddsAByte;
}

std::optional<Shape> shape_if_known(const Value* value) {
  return value == nullptr || !value->shape() ? std::nullopt : value->shape()->known();
}

bool has_known_shapes(const Node& node) {
  const auto is_known = [](const Value* value) {
    return value == nullptr || shape_if_known(value);
  };
  for (int i = 0; i < node.output_count(); ++i) {
    if (!is_known(node.output(i))) return false;
  }
  return std::ranges::all_of(node.inputs(), is_known);
}

}  // namespace graft
