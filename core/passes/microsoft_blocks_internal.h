#pragma once

#include "core/passes/microsoft_call_internal.h"

// The domain com.microsoft.nchwc: images whose channels lie in blocks, [N,C/b,H,W,b] in memory
// under a shape [N,C,H,W] in which C is filled up to whole blocks. Here they are plain images of
// that shape; weights, which the file holds in blocks too, are put in order before each
// convolution, so that they train as they lie in the file.
namespace graft::passes {

inline constexpr std::string_view kBlockedDomain = "com.microsoft.nchwc";

/// How many channels a block of this graph has: 8 or 16. onnxruntime takes what its machine wants
/// and writes it nowhere. Where shapes leave it open, as this machine would have it: such files are
/// for machines like the one that wrote them.
std::int64_t channels_of_block(const Graph& graph);

Outputs expand_blocked_conv(const MicrosoftCall& call);
Outputs expand_blocked_upsample(const MicrosoftCall& call);
Outputs expand_reorder_input(const MicrosoftCall& call);
Outputs expand_reorder_output(const MicrosoftCall& call);

}  // namespace graft::passes
