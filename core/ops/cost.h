#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/node.h"

namespace graft {

/// Multiply-adds of one run of the node, as its op's row says (OpDef::multiply_adds): those of
/// products of matrices, convolutions, recurrent layers and the gradients of these, where
/// practically all are; 0 for any other op. Nothing when a shape that they need is not known.
/// Throws Error{shape} if they overflow.
std::optional<std::int64_t> node_multiply_adds(const Node& node);

/// How long the node runs, in bytes of memory that could be read or written in the same time: those
/// of its operands, and its multiply-adds at 16 a byte, as on machines with about 500 GFLOP/s and
/// 15 GB/s. All shapes must be known. For comparing nodes, not for telling the time.
double cost_in_bytes(const Node& node);

/// The shape, if the value is there and its shape is known as a whole.
std::optional<Shape> shape_if_known(const Value* value);
/// Whether those of all values that it reads and makes are known, as far as they are not left out.
bool has_known_shapes(const Node& node);

}  // namespace graft
