#pragma once

#include "core/passes/microsoft_call_internal.h"

namespace graft::passes {

Outputs expand_attention(const MicrosoftCall& call);
Outputs expand_group_query_attention(const MicrosoftCall& call);
Outputs expand_multi_head_attention(const MicrosoftCall& call);
Outputs expand_rotary_embedding(const MicrosoftCall& call);

}  // namespace graft::passes
