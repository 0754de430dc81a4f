#pragma once

#include <cstdint>

#include "core/ops/builder.h"

namespace graft::passes {

/// Rewrites a node of opset `from` below 7 (kOldestOpset) into the form of opset 7, from which the
/// op's row goes on: broadcasting by attributes, consumed_inputs, is_test and other switches of the
/// first versions (https://onnx.ai/onnx/operators, "Version 1" and "Version 6"). New nodes stand
/// before it. Throws Error{unsupported} where that takes a rank that is not known.
void upgrade_legacy(Node& node, std::int64_t from, Builder& builder);

}  // namespace graft::passes
