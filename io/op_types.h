#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/node.h"

namespace graft::onnx {

/// Which inputs and outputs of a node may have an element type.
struct SlotTypes {
  std::vector<bool> inputs;
  std::vector<bool> outputs;
};

/// Of a node of the standard ops in the forms of `opset`, by ONNX's schema of the op; nothing where
/// that version has no such op.
std::optional<SlotTypes> slots_that_take(const Node& node, std::int64_t opset, DType type);

}  // namespace graft::onnx
