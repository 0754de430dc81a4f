#pragma once

#include "core/graph/graph.h"

namespace graft::passes {

/// FlexAttention of ai.onnx.preview: scaled dot-product attention with graphs as attributes that
/// change its scores and probabilities.
bool is_flex_attention(const Node& node);

/// Replaces it by ordinary ops and its two graphs, which must be in their newest form. Throws
/// Error{unsupported} where the element type, or numbers of heads that differ, are not known;
/// Error{shape} or Error{model} if its inputs or graphs do not fit.
void inline_flex_attention(Node& node);

}  // namespace graft::passes
